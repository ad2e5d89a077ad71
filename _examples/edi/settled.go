package main

import (
	"context"
	"sync/atomic"

	"github.com/watermill-inbox/inbox"
)

// settled is an observer that closes all when so many deliveries have come to
// an end that is not to be repeated.
type settled struct {
	left atomic.Int64
	all  chan struct{}
}

func newSettled(deliveries int) *settled {
	s := &settled{all: make(chan struct{})}
	s.left.Store(int64(deliveries))
	return s
}

// DeliveryStart implements [inbox.Observer].
func (s *settled) DeliveryStart(ctx context.Context, _ inbox.Delivery) context.Context { return ctx }

// DeliveryEnd implements [inbox.Observer].
func (s *settled) DeliveryEnd(_ context.Context, e inbox.Event) {
	switch e.Outcome {
	case inbox.Failed, inbox.InFlight: // will be delivered again
	case inbox.Processed, inbox.Duplicate, inbox.Discarded, inbox.Unprotected, inbox.Skipped:
		if s.left.Add(-1) == 0 {
			close(s.all)
		}
	}
}
