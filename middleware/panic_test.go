package inboxmw_test

import (
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func goexit(*message.Message) ([]*message.Message, error) {
	runtime.Goexit()
	return nil, nil
}

// undisturbed runs h whatever it does to its goroutine, and returns what it
// panicked with.
func undisturbed(h message.HandlerFunc, msg *message.Message) any {
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		_, _ = h(msg)
	}()
	return <-panicked
}

// settled reports whether msg was acked or nacked.
func settled(msg *message.Message) string {
	select {
	case <-msg.Acked():
		return "acked"
	case <-msg.Nacked():
		return "nacked"
	default:
		return "neither"
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	type cause struct{ text string }
	value := &cause{text: "out of paper"}
	f := setup(t, inboxmw.Handler{})
	msg := f.message("o1")
	var stack string
	recoverer := func(h message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) (out []*message.Message, err error) {
			defer func() {
				if r := recover(); r != nil {
					stack = string(debug.Stack())
					panic(r)
				}
			}()
			return h(msg)
		}
	}
	got := undisturbed(recoverer(f.wrap(panicsWith(value))), msg)

	t.Run("its value goes on unchanged", func(t *testing.T) {
		t.Parallel()
		if got != value {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a recoverer outside sees where the handler panicked", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(stack, "panicsWith") {
			t.Errorf("the stack is\n%s", stack)
		}
	})
	t.Run("the message is left to whoever stands outside", func(t *testing.T) {
		t.Parallel()
		wantEqual(t, "message", settled(msg), "neither")
	})
	t.Run("effects are rolled back and the key is free", func(t *testing.T) {
		t.Parallel()
		if _, ok := f.store.entry(key("o1")); ok || len(f.store.committed()) > 0 || f.store.held() > 0 {
			t.Errorf("key kept: %t, effects %q, open transactions %d", ok, f.store.committed(), f.store.held())
		}
	})
	t.Run("observers get the end", func(t *testing.T) {
		t.Parallel()
		if e := f.watcher.last(t); e.Outcome != inbox.Failed || e.Err == nil {
			t.Errorf("got %+v", e)
		}
	})
}

func panicsWith(value any) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		inbox.MustTx[*memoryTx](msg.Context()).Write("1")
		panic(value)
	}
}

func TestGoexit(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	msg := f.message("o1")
	if got := undisturbed(f.wrap(goexit), msg); got != nil {
		t.Errorf("it became a panic: %v", got)
	}
	wantEqual(t, "message", settled(msg), "nacked")
	if _, ok := f.store.entry(key("o1")); ok || f.store.held() > 0 {
		t.Errorf("key kept: %t, open transactions %d", ok, f.store.held())
	}
	if e := f.watcher.last(t); e.Outcome != inbox.Failed || e.Err == nil {
		t.Errorf("the observers saw %+v", e)
	}
	mustHandle(t, f.wrap(writes("1")), f.message("o1"))
	wantEqual(t, "effects of the redelivery", f.store.committed(), []string{"1"})
}

func TestDeliveryIsNoLongerActiveAfterAPanic(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	undisturbed(f.wrap(panicsWith("x")), f.message("o1"))
	undisturbed(f.wrap(goexit), f.message("o1"))
	mustHandle(t, f.wrap(writes("1")), f.message("o1")) // as of a second router
	f.logs.wantLines(t, 0, "info", "two routers")
}

func TestTransactionDiesWithItsDelivery(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		if w.name == "bind fails" {
			continue // the handler does not run
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, w.handler)
			if w.prepare != nil {
				w.prepare(f)
			}
			ctx := f.ctx
			undisturbed(f.wrap(func(msg *message.Message) ([]*message.Message, error) {
				ctx = msg.Context() //nolint:fatcontext // looked at when it is over
				if _, err := inbox.Tx[*memoryTx](ctx); err != nil {
					t.Errorf("within the handler: %v", err)
				}
				if w.end == nil {
					return nil, nil
				}
				return w.end(msg)
			}), f.message("o1"))
			if ctx == f.ctx {
				return // the handler was not reached
			}
			if _, err := inbox.Tx[*memoryTx](ctx); !errors.Is(err, inbox.ErrTxEnded) {
				t.Errorf("after the delivery: %v", err)
			}
			if err := inbox.SetResult(ctx, nil); !errors.Is(err, inbox.ErrTxEnded) {
				t.Errorf("after the delivery: %v", err)
			}
		})
	}
}
