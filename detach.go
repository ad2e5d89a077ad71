package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/watermill-inbox/inbox/internal/delivery"
)

// DefaultGrace is how long a delivery may go on after its context is cancelled,
// unless the middleware is configured otherwise.
const DefaultGrace = 30 * time.Second

// errGrace is the cause of a context that outlived its parent by the grace period.
var errGrace = errors.New("inbox: the grace period after the cancellation is over")

// Detach returns a context for the transaction of a delivery, for stores. It has
// the values and the deadline of ctx, but a cancellation of ctx reaches it only
// after the grace period: a router that closes cancels its messages at once, and
// the handler that is about to finish should commit instead of being rolled back.
//
// The grace period is that of the middleware, or [DefaultGrace]; a negative one
// means that ctx is followed at once. Call the function it returns when the
// transaction has ended, to release what Detach holds.
func Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	grace, ok := delivery.Grace(ctx)
	if !ok {
		grace = DefaultGrace
	}
	if grace < 0 {
		return context.WithCancel(ctx)
	}
	if ctx.Done() == nil {
		return context.WithCancel(ctx)
	}
	detached := context.WithoutCancel(ctx)
	release := func() {}
	if deadline, ok := ctx.Deadline(); ok {
		detached, release = context.WithDeadline(detached, deadline)
	}
	detached, cancel := context.WithCancelCause(detached)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(errGrace)
		case <-detached.Done():
		}
	})
	return detached, func() {
		stop()
		cancel(context.Canceled)
		release()
	}
}
