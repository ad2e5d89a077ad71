package inboxmw_test

import (
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestUnprotectedAndSkippedMessagesPass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		handler inboxmw.Handler
		outcome inbox.Outcome
	}{
		{"an unprotected handler", inboxmw.Handler{Unprotected: true}, inbox.Unprotected},
		{"a skipped message", inboxmw.Handler{Skip: func(msg *message.Message) bool { return msg.UUID == "o1" }}, inbox.Skipped},
	} {
		t.Run(c.name+" reaches the handler without transaction, each time", func(t *testing.T) {
			t.Parallel()
			f := setup(t, c.handler)
			runs := 0
			h := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
				runs++
				if _, err := inbox.Tx[*memoryTx](msg.Context()); !errors.Is(err, inbox.ErrNoTx) {
					t.Errorf("got %v", err)
				}
				return []*message.Message{message.NewMessage("m1", nil)}, nil
			})
			for range 2 {
				wantEqual(t, "messages", uuids(mustHandle(t, h, f.message("o1"))), []string{"m1"})
			}
			if runs != 2 || len(f.store.asked()) != 0 {
				t.Errorf("%d runs; the store was asked for %v", runs, f.store.asked())
			}
		})
		t.Run(c.name+" is counted by observers, whose context the handler has", func(t *testing.T) {
			t.Parallel()
			f := setup(t, c.handler)
			msg := f.message("o1")
			mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
				if msg.Context().Value(watcherKey{}) == nil {
					t.Error("the context is not that of the observer")
				}
				return []*message.Message{message.NewMessage("m1", nil)}, nil
			}), msg)
			e := f.watcher.last(t)
			if e.Outcome != c.outcome || e.Err != nil || e.Produced != 1 || e.Handler != handlerName || e.Topic != subscribeTopic {
				t.Errorf("the observers saw %+v", e)
			}
			if msg.Context() != f.ctx {
				t.Error("the context is not that of the delivery")
			}
		})
		t.Run(c.name+" is left as the handler makes it, error and panic too", func(t *testing.T) {
			t.Parallel()
			f := setup(t, c.handler)
			msg := f.message("o1")
			_, err := f.wrap(mutating(func(*message.Message) ([]*message.Message, error) { return nil, errHandler }))(msg)
			if err != errHandler { //nolint:errorlint // the very value is promised
				t.Errorf("got %v", err)
			}
			if msg.UUID != "changed" {
				t.Error("the message was put back")
			}
			if got := undisturbed(f.wrap(func(*message.Message) ([]*message.Message, error) { panic("x") }), f.message("o1")); got != "x" {
				t.Errorf("got %v", got)
			}
			wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{c.outcome, c.outcome})
		})
		t.Run(c.name+" does not see the transaction that its context brought from another message", func(t *testing.T) {
			t.Parallel()
			f := setup(t, c.handler)
			protected := inboxmw.MustNew(newMemory(), nil).Middleware(func(outer *message.Message) ([]*message.Message, error) {
				mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
					if _, err := inbox.Tx[*memoryTx](msg.Context()); !errors.Is(err, inbox.ErrNoTx) {
						t.Errorf("the transaction of another message is there: %v", err)
					}
					return nil, nil
				}), deliverable(outer.Context(), "o1"))
				return nil, nil
			})
			mustHandle(t, protected, f.message("outer"))
		})
	}
}

func TestProtectedHandlerHasItsOwnTransaction(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	other := newMemory()
	h := inboxmw.MustNew(other, nil).Middleware(func(outer *message.Message) ([]*message.Message, error) {
		theirs := inbox.MustTx[*memoryTx](outer.Context())
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			if inbox.MustTx[*memoryTx](msg.Context()) == theirs {
				t.Error("the transaction is that of the message that the context came from")
			}
			return writes("own")(msg)
		}), deliverable(outer.Context(), "o1"))
		return nil, errHandler
	})
	if _, err := h(f.message("outer")); !errors.Is(err, errHandler) {
		t.Fatalf("got %v", err)
	}
	wantEqual(t, "effects", f.store.committed(), []string{"own"})
	wantEqual(t, "effects of the outer message", other.committed(), []string(nil))
}

func TestMessageIsProtectedAlthoughItsContextCameFromOneThatPassed(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]inboxmw.Handler{
		"unprotected": {Unprotected: true},
		"skipped":     {Skip: func(*message.Message) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{})
			mustHandle(t, f.inbox.With(h)(func(outer *message.Message) ([]*message.Message, error) {
				return f.wrap(writes("1"))(deliverable(outer.Context(), "o1"))
			}), f.message("outer"))
			wantEqual(t, "effects", f.store.committed(), []string{"1"})
		})
	}
}

func TestRelays(t *testing.T) {
	t.Parallel()
	nothing := func(*message.Message) ([]*message.Message, error) { return nil, nil }
	for _, name := range []string{"events_forwarder", "requeuer"} {
		t.Run(name+" is unprotected, which is logged once", func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{})
			h := f.wrap(nothing)
			ctx := routed(t, name, "")
			mustHandle(t, h, deliverable(ctx, "1"))
			mustHandle(t, h, deliverable(ctx, "1"))
			wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{inbox.Unprotected, inbox.Unprotected})
			f.logs.wantLines(t, 1, "info", "unprotected", name)
		})
		t.Run(name+" is protected if Config.Handlers names it", func(t *testing.T) {
			t.Parallel()
			store, l := newMemory(), &logs{}
			in := inboxmw.MustNew(store, &inboxmw.Config{Handlers: map[string]inboxmw.Handler{name: {}}, Logger: l})
			mustHandle(t, in.Middleware(writes("1")), deliverable(routed(t, name, ""), "1"))
			wantEqual(t, "effects", store.committed(), []string{"1"})
			l.wantLines(t, 0, "info", "unprotected")
		})
	}
}
