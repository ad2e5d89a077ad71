package inboxmw_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// memory is a store without a database. The effects of handlers are what they
// write through a *memoryTx; they stay only if the delivery commits.
type memory struct {
	mu      sync.Mutex
	calls   []inbox.Delivery
	fails   map[inbox.Op]error
	entries map[inbox.Key]inbox.Entry
	effects []string
	open    int // transactions
	window  time.Duration
}

// Window implements [inbox.Windowed].
func (s *memory) Window(string) time.Duration { return s.window }

// memoryTx is the transaction of a memory.
type memoryTx struct {
	ctx    context.Context //nolint:containedctx // of the transaction
	writes []string
	outbox []*message.Message
}

func (tx *memoryTx) Write(effect string) { tx.writes = append(tx.writes, effect) }

// writer is an interface that the transaction satisfies.
type writer interface{ Write(effect string) }

func newMemory() *memory {
	return &memory{window: inbox.DefaultWindow, fails: map[inbox.Op]error{}, entries: map[inbox.Key]inbox.Entry{}}
}

func (s *memory) Once(ctx context.Context, d inbox.Delivery, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	s.mu.Lock()
	s.calls = append(s.calls, d)
	known, ok := s.entries[d.Key]
	s.mu.Unlock()
	for _, op := range []inbox.Op{inbox.OpBegin, inbox.OpClaim} {
		if err := s.failure(op, d); err != nil {
			return inbox.Entry{}, false, err
		}
	}
	if ok {
		return known, true, nil
	}
	run, release := inbox.Detach(ctx)
	defer release()
	s.begin(1)
	defer s.begin(-1)
	tx := &memoryTx{ctx: run}
	effect, err := fn(inbox.ContextWithTx(run, tx))
	if err != nil {
		return inbox.Entry{}, false, err
	}
	if err := s.failure(inbox.OpCommit, d); err != nil {
		return inbox.Entry{}, false, err
	}
	e := inbox.Entry{Delivery: d, Discard: effect.Discard}
	s.mu.Lock()
	defer s.mu.Unlock()
	if effect.Discard == "" {
		e.Record, e.Result = effect.Record, effect.Result
		s.effects = append(s.effects, tx.writes...)
	}
	stored := e
	stored.ProcessedAt, stored.Age = time.Date(2025, 12, 1, 9, 0, 0, 0, time.UTC), 3*time.Minute
	s.entries[d.Key] = stored
	return e, false, nil
}

func (s *memory) begin(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
}

func (s *memory) failure(op inbox.Op, d inbox.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails[op]; err != nil {
		return &inbox.StoreError{Op: op, Key: d.Key, Err: err}
	}
	return nil
}

// fail makes a step fail until it is given nil.
func (s *memory) fail(op inbox.Op, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[op] = err
}

// put stores e, as an earlier delivery would have.
func (s *memory) put(e inbox.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[e.Key] = e
}

// entry returns what is stored under a key.
func (s *memory) entry(k inbox.Key) (inbox.Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[k]
	return e, ok
}

// committed returns the effects that stay.
func (s *memory) committed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects)
}

// asked returns the deliveries that the store was asked for.
func (s *memory) asked() []inbox.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// held returns how many transactions are open.
func (s *memory) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// checked is a memory that can be asked what is wrong with it.
type checked struct {
	*memory
	findings []inbox.Finding
	err      error
	deadline bool // whether the last check was bounded
}

func (s *checked) Check(ctx context.Context) ([]inbox.Finding, error) {
	_, s.deadline = ctx.Deadline()
	return s.findings, s.err
}
