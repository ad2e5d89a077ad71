package inboxmw_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestGrace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		grace time.Duration
		lasts time.Duration // how long the handler's context lasts after the cancellation
	}{
		{"zero is the default", 0, inbox.DefaultGrace},
		{"positive lasts that long", 3 * time.Second, 3 * time.Second},
		{"negative follows at once", -1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newMemory()
				h := inboxmw.MustNew(store, nil).With(inboxmw.Handler{Consumer: handlerName, Grace: c.grace})
				ctx, cancel := context.WithCancel(t.Context())
				_, err := h(func(msg *message.Message) ([]*message.Message, error) {
					cancel()
					started := time.Now()
					<-msg.Context().Done()
					wantEqual(t, "it lasted", time.Since(started), c.lasts)
					return nil, msg.Context().Err()
				})(deliverable(ctx, "o1"))
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
	t.Run("a handler that ends within it commits", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store := newMemory()
			ctx, cancel := context.WithCancel(t.Context())
			msg := deliverable(ctx, "o1")
			out := mustHandle(t, inboxmw.MustNew(store, nil).With(inboxmw.Handler{Consumer: handlerName})(func(msg *message.Message) ([]*message.Message, error) {
				cancel()
				<-time.After(inbox.DefaultGrace - time.Second)
				if err := msg.Context().Err(); err != nil {
					return nil, err
				}
				return writes("1")(msg)
			}), msg)
			wantEqual(t, "effects", store.committed(), []string{"1"})
			if len(out) > 0 || msg.Context() != ctx {
				t.Error("the context is not that of the delivery")
			}
		})
	})
	t.Run("a deadline is always followed", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := inboxmw.MustNew(newMemory(), nil).With(inboxmw.Handler{Consumer: handlerName})(func(msg *message.Message) ([]*message.Message, error) {
				started := time.Now()
				<-msg.Context().Done()
				wantEqual(t, "it lasted", time.Since(started), time.Second)
				return nil, msg.Context().Err()
			})(deliverable(ctx, "o1"))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
}
