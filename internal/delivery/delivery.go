// Package delivery is the state of one delivery, shared by the root package,
// which hands it to handlers, and the middleware, which owns it.
package delivery

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// State lives from the moment the middleware takes a message until the store
// has answered. Handlers reach it through the context only.
type State struct {
	// Owner identifies the message and the inbox: a context can be carried to
	// another message, and its state must not be taken for that one's.
	Owner any

	ended atomic.Bool

	mu      sync.Mutex
	taken   bool
	result  []byte
	discard string
	kept    []any
}

// End marks the delivery as over: its transaction answers no longer.
func (s *State) End() { s.ended.Store(true) }

// Ended reports whether the delivery is over.
func (s *State) Ended() bool { return s.ended.Load() }

// SetResult keeps b as the handler's answer. It reports false once all was taken.
func (s *State) SetResult(b []byte) bool {
	return s.set(func() { s.result = b })
}

// SetDiscard keeps reason, which is not empty. It reports false once all was taken.
func (s *State) SetDiscard(reason string) bool {
	return s.set(func() { s.discard = reason })
}

// Keep adds what is to be published once the transaction is committed. It reports
// false once all was taken.
func (s *State) Keep(produced any) bool {
	return s.set(func() { s.kept = append(s.kept, produced) })
}

func (s *State) set(do func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.taken {
		do()
	}
	return !s.taken
}

// Take returns what the handler has left when it returned. What comes later, from
// a goroutine that it left behind, would not be committed, and is refused.
func (s *State) Take() (result []byte, discard string, kept []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = true
	return s.result, s.discard, s.kept
}

// slot is a link of a context: the state of the delivery and the handles of its
// transaction, all of them in every slot, so that a look-up is one ctx.Value.
type slot struct {
	state   *State
	handles []any // the latest last
}

type slotKey struct{}

// NewContext starts an empty slot for s, which may be nil: nothing that an
// enclosing context deposited is found through the new one.
func NewContext(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, slotKey{}, &slot{state: s})
}

// WithHandles adds handles of the transaction to the slot of ctx.
func WithHandles(ctx context.Context, handles []any) context.Context {
	next := &slot{}
	if was, ok := ctx.Value(slotKey{}).(*slot); ok {
		next.state = was.state
		next.handles = append(next.handles, was.handles...)
	}
	next.handles = append(next.handles, handles...)
	return context.WithValue(ctx, slotKey{}, next)
}

// FromContext returns the state of the delivery that ctx belongs to, or nil.
func FromContext(ctx context.Context) *State {
	if s, ok := ctx.Value(slotKey{}).(*slot); ok {
		return s.state
	}
	return nil
}

// Handles returns the handles of the transaction in ctx, the latest last.
func Handles(ctx context.Context) []any {
	if s, ok := ctx.Value(slotKey{}).(*slot); ok {
		return s.handles
	}
	return nil
}

type graceKey struct{}

// WithGrace sets how long a delivery goes on after ctx is done.
func WithGrace(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, graceKey{}, d)
}

// Grace returns what WithGrace set.
func Grace(ctx context.Context) (time.Duration, bool) {
	d, ok := ctx.Value(graceKey{}).(time.Duration)
	return d, ok
}
