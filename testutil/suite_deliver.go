package testutil

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
)

// patience is how long a case waits for what should come at once.
const patience = 30 * time.Second

// handler is what a store runs.
type handler func(ctx context.Context) (inbox.Effect, error)

// answer is what a store said to one delivery.
type answer struct {
	entry     inbox.Entry
	duplicate bool
	err       error
	ran       bool
}

var errHandler = errors.New("the handler does not want to")

func keyOf(id string) inbox.Key { return inbox.Key{Consumer: "invoices", MessageID: id} }

// deliver delivers key to s.
func deliver(ctx context.Context, s inbox.Store, key inbox.Key, h handler) answer {
	return deliverAs(ctx, s, inbox.Delivery{Key: key}, h)
}

func deliverAs(ctx context.Context, s inbox.Store, d inbox.Delivery, h handler) answer {
	var a answer
	a.entry, a.duplicate, a.err = s.Once(ctx, d, func(ctx context.Context) (inbox.Effect, error) {
		a.ran = true
		return h(ctx)
	})
	return a
}

// mustProcess fails t unless the delivery was the first and was committed.
func (a answer) mustProcess(t *testing.T) {
	t.Helper()
	if a.err != nil || a.duplicate || !a.ran {
		t.Fatalf("got %s, want a processed delivery", a)
	}
}

// mustDuplicate fails t unless the delivery was answered from the stored entry.
func (a answer) mustDuplicate(t *testing.T) {
	t.Helper()
	if a.err != nil || !a.duplicate || a.ran {
		t.Fatalf("got %s, want a duplicate", a)
	}
}

// mustFail fails t unless the delivery failed with an error that is target.
func (a answer) mustFail(t *testing.T, target error) {
	t.Helper()
	if a.err == nil || a.duplicate {
		t.Fatalf("got %s, want the error %q", a, target)
	}
	if !errors.Is(a.err, target) {
		t.Fatalf("got %s, want the error %q", a, target)
	}
}

func (a answer) String() string {
	var s string
	switch {
	case a.err != nil:
		s = "error " + a.err.Error()
	case a.duplicate:
		s = "a duplicate"
	default:
		s = "a first delivery"
	}
	if a.ran {
		return s + ", the handler ran"
	}
	return s + ", the handler did not run"
}

// writes is a handler with one effect.
func (in *Instance) writes(id string) handler {
	return func(ctx context.Context) (inbox.Effect, error) {
		return inbox.Effect{}, in.Write(ctx, id)
	}
}

// then is a handler that does h first, and ends with err.
func (h handler) then(err error) handler {
	return func(ctx context.Context) (inbox.Effect, error) {
		if _, failed := h(ctx); failed != nil {
			return inbox.Effect{}, failed
		}
		return inbox.Effect{}, err
	}
}

// mustHave fails t unless this many effects with id are committed.
func (in *Instance) mustHave(t *testing.T, effects int, id string) {
	t.Helper()
	if got := in.Effects(id); got != effects {
		t.Fatalf("got %d committed effects %q, want %d", got, id, effects)
	}
}

// mustKeep fails t unless this many keys are committed.
func (in *Instance) mustKeep(t *testing.T, keys int) {
	t.Helper()
	if got := in.Keys(); got != keys {
		t.Fatalf("got %d committed keys, want %d", got, keys)
	}
}

// gate holds handlers until the test lets them go on.
type gate struct {
	once    sync.Once
	leave   chan struct{}
	entered chan struct{} // one value per handler that came
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{leave: make(chan struct{}), entered: make(chan struct{}, 64)}
	t.Cleanup(g.open)
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.leave) }) }

// hold reports that a handler came, and holds it.
func (g *gate) hold() {
	g.entered <- struct{}{}
	<-g.leave
}

// before is h held at the gate.
func (g *gate) before(h handler) handler {
	return func(ctx context.Context) (inbox.Effect, error) {
		g.hold()
		return h(ctx)
	}
}

// async runs f beside the test.
func async[T any](f func() T) <-chan T {
	done := make(chan T, 1)
	go func() { done <- f() }()
	return done
}

// await returns what comes, and fails t if nothing does.
func await[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatalf("%s: nothing after %s", what, patience)
		panic("unreachable")
	}
}
