package inbox_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

type valueKey struct{}

func TestDetach(t *testing.T) {
	t.Parallel()

	t.Run("has the values of the context", func(t *testing.T) {
		t.Parallel()
		for _, grace := range []time.Duration{time.Second, -1} {
			parent := delivery.WithGrace(context.WithValue(t.Context(), valueKey{}, "value"), grace)
			ctx, release := inbox.Detach(parent)
			if got := ctx.Value(valueKey{}); got != "value" {
				t.Errorf("grace %s: got %v", grace, got)
			}
			release()
		}
	})

	t.Run("passes a cancellation on after the default grace period", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithCancel(t.Context())
			mustEndAfterGrace(t, parent, cancel, inbox.DefaultGrace)
		})
	})

	t.Run("passes a cancellation on after the grace period of the middleware", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithCancel(delivery.WithGrace(t.Context(), time.Minute))
			mustEndAfterGrace(t, parent, cancel, time.Minute)
		})
	})

	t.Run("has the grace period also if the context was cancelled before", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithCancel(t.Context())
			cancel()
			mustEndAfterGrace(t, parent, cancel, inbox.DefaultGrace)
		})
	})

	t.Run("ends at once with a negative grace period", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithCancel(delivery.WithGrace(t.Context(), -1))
			ctx, release := inbox.Detach(parent)
			defer release()
			cancel()
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("got %v, want %q", ctx.Err(), context.Canceled)
			}
		})
	})

	t.Run("keeps the deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx, release := inbox.Detach(parent)
			defer release()
			want, _ := parent.Deadline()
			if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
				t.Fatalf("got %s, %v, want %s", got, ok, want)
			}
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !time.Now().Equal(want) {
				t.Errorf("ended with %v at %s, want %s", ctx.Err(), time.Now(), want)
			}
		})
	})

	t.Run("keeps the deadline within the grace period", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			ctx, release := inbox.Detach(parent)
			defer release()
			cancel()
			<-ctx.Done()
			if got := time.Since(start); got != time.Second || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("ended with %v after %s, want a second", ctx.Err(), got)
			}
		})
	})

	t.Run("never ends by itself without a context that can", func(t *testing.T) {
		t.Parallel()
		ctx, release := inbox.Detach(context.WithoutCancel(t.Context()))
		if _, ok := ctx.Deadline(); ok || ctx.Err() != nil {
			t.Errorf("got a deadline or %v", ctx.Err())
		}
		release()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("got %v after the release", ctx.Err())
		}
	})

	t.Run("ends with its release, whenever that is", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for _, before := range []bool{false, true} {
				parent, cancel := context.WithCancel(t.Context())
				ctx, release := inbox.Detach(parent)
				if before {
					cancel()
					synctest.Wait()
				}
				release()
				release()
				cancel()
				if !errors.Is(ctx.Err(), context.Canceled) {
					t.Errorf("got %v after the release", ctx.Err())
				}
			}
		})
	})
}

//nolint:paralleltest // the goroutines of the whole process are counted
func TestDetachReleasesItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		parent, cancel := context.WithCancel(t.Context())
		_, release := inbox.Detach(parent)
		if got := runtime.NumGoroutine(); got != before {
			t.Errorf("%d goroutines before the cancellation, want none more", got-before)
		}
		cancel()
		synctest.Wait()
		if got := runtime.NumGoroutine(); got != before+1 {
			t.Fatalf("%d goroutines in the grace period, want one", got-before)
		}
		release()
		synctest.Wait()
		if got := runtime.NumGoroutine(); got != before {
			t.Errorf("%d goroutines are left", got-before)
		}
	})
}

// mustEndAfterGrace cancels the parent of a detached context.
func mustEndAfterGrace(t *testing.T, parent context.Context, cancel context.CancelFunc, grace time.Duration) { //nolint:revive // t first, as in every helper
	t.Helper()
	start := time.Now()
	ctx, release := inbox.Detach(parent)
	defer release()
	cancel()
	<-time.After(grace - 1)
	synctest.Wait()
	if ctx.Err() != nil {
		t.Fatalf("ended with %v before the grace period is over", ctx.Err())
	}
	<-ctx.Done()
	if got := time.Since(start); got != grace {
		t.Errorf("ended after %s, want %s", got, grace)
	}
	if !errors.Is(ctx.Err(), context.Canceled) || errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("ended with %v, caused by %v, want the grace period as the cause", ctx.Err(), context.Cause(ctx))
	}
}
