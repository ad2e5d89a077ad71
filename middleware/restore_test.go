package inboxmw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

var errHandler = errors.New("the printer is out of paper")

func bindNothing(ctx context.Context) (context.Context, error) { return ctx, nil }

type boundKey struct{}

// ways are all in which a delivery can end but a commit. Each handler has made a
// mess of the message before.
func ways() []way {
	errDatabase := errors.New("the database is gone")
	return []way{
		{name: "the handler fails", end: func(*message.Message) ([]*message.Message, error) { return nil, errHandler }},
		{name: "the handler panics", end: func(*message.Message) ([]*message.Message, error) { panic("out of paper") }},
		{name: "the handler ends its goroutine", end: goexit},
		{name: "the claim fails", prepare: func(f *fixture) { f.store.fail(inbox.OpClaim, errDatabase) }},
		{name: "the commit fails", prepare: func(f *fixture) { f.store.fail(inbox.OpCommit, errDatabase) }},
		{name: "another delivery is in flight", prepare: func(f *fixture) { f.store.fail(inbox.OpClaim, inbox.ErrInFlight) }},
		{name: "what it produces is refused", end: produces("")},
		{name: "the message is discarded", end: func(msg *message.Message) ([]*message.Message, error) {
			return nil, inbox.Discard(msg.Context(), errHandler)
		}},
		{name: "bind fails", handler: inboxmw.Handler{Bind: func(ctx context.Context) (context.Context, error) {
			return context.WithValue(ctx, boundKey{}, 1), errDatabase
		}}},
		{name: "it is a duplicate", prepare: func(f *fixture) {
			f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1")}})
		}},
		{name: "it is a duplicate whose hook makes a mess", prepare: func(f *fixture) {
			f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1")}})
		}, handler: inboxmw.Handler{OnDuplicate: func(msg *message.Message, _ inbox.Entry) error {
			mutate(msg)
			return nil
		}}},
		{name: "it is a duplicate whose record is unreadable", prepare: func(f *fixture) {
			f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1")}, Record: []byte{99}})
		}},
	}
}

type way struct {
	name    string
	handler inboxmw.Handler
	prepare func(*fixture)
	end     message.HandlerFunc // nil: succeeds
}

func TestMessageIsAsDeliveredUnlessItsRunWasCommitted(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, w.handler)
			if w.prepare != nil {
				w.prepare(f)
			}
			msg := f.message("o1")
			payload := msg.Payload
			undisturbed(f.wrap(func(msg *message.Message) ([]*message.Message, error) {
				mutate(msg)
				if w.end == nil {
					return nil, nil
				}
				return w.end(msg)
			}), msg)
			if !msg.Equals(f.message("o1")) {
				t.Errorf("the message is now %q %v %q", msg.UUID, msg.Metadata, msg.Payload)
			}
			if &msg.Payload[0] != &payload[0] {
				t.Error("the payload is another slice")
			}
			if msg.Context() != f.ctx {
				t.Error("the context is not that of the delivery")
			}
			if held := f.store.held(); held != 0 {
				t.Errorf("%d transactions are open", held)
			}
			if effects := f.store.committed(); len(effects) > 0 {
				t.Errorf("effects %q stay", effects)
			}
			f.logs.wantLines(t, 0, "error", "payload")
		})
	}
}

// The router may fail to publish after the commit, and the broker then delivers
// this object again: under another UUID it would be another message.
func TestAfterACommitTheMessageIsAsBefore(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	msg := f.message("o1")
	mustHandle(t, f.wrap(mutating(writes("1"))), msg)
	if !msg.Equals(f.message("o1")) {
		t.Errorf("the message is now %q %v %q", msg.UUID, msg.Metadata, msg.Payload)
	}
	if msg.Context() != f.ctx {
		t.Error("the context is not that of the delivery")
	}
}

func TestPayloadChangedInPlaceIsLoggedAsError(t *testing.T) {
	t.Parallel()
	overwrite := func(err error) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			msg.Payload[0] = 'X'
			return nil, err
		}
	}
	t.Run("of a message that will be delivered again", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		if _, err := f.wrap(overwrite(errHandler))(f.message("o1")); !errors.Is(err, errHandler) {
			t.Errorf("got %v", err)
		}
		f.logs.wantLines(t, 1, "error", "payload", handlerName, "o1")
		f.logs.wantLines(t, 0, "error", `"order"`)
	})
	t.Run("not of one that is done", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		mustHandle(t, f.wrap(overwrite(nil)), f.message("o1"))
		f.logs.wantLines(t, 0, "error")
	})
}

func TestRedeliveryOfAMutatedMessageHasItsKey(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	msg := f.message("o1")
	fails := true
	h := f.wrap(mutating(func(msg *message.Message) ([]*message.Message, error) {
		if fails {
			return nil, errHandler
		}
		return writes("1")(msg)
	}))
	if _, err := h(msg); !errors.Is(err, errHandler) {
		t.Fatalf("got %v", err)
	}
	fails = false
	mustHandle(t, h, msg.CopyWithContext()) // as gochannel does it
	wantEqual(t, "keys", []inbox.Key{f.store.asked()[0].Key, f.store.asked()[1].Key}, []inbox.Key{key("o1"), key("o1")})
	wantEqual(t, "effects", f.store.committed(), []string{"1"})
}

func TestErrorOfTheHandlerIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	out, err := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
		inbox.MustTx[*memoryTx](msg.Context()).Write("1")
		return []*message.Message{message.NewMessage("m1", nil)}, errHandler
	})(f.message("o1"))
	if err != errHandler { //nolint:errorlint // the very value is promised
		t.Errorf("got %v", err)
	}
	if len(out) > 0 || len(f.store.committed()) > 0 {
		t.Errorf("messages %v and effects %q of a failed handler go on", uuids(out), f.store.committed())
	}
}
