package inboxmw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// overtaken is a store in which another delivery keeps the key while this one's
// effects are undone.
type overtaken struct{ by inbox.Entry }

func (s *overtaken) Once(ctx context.Context, _ inbox.Delivery, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	if _, err := fn(inbox.ContextWithTx(ctx, &memoryTx{})); err != nil {
		return inbox.Entry{}, false, err
	}
	return s.by, true, nil
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	errOld := errors.New("the order was cancelled")
	for _, c := range []struct {
		name   string
		answer func(discarded error) error
	}{
		{"with the error of Discard", func(err error) error { return err }},
		{"with no error", func(error) error { return nil }},
		{"with another error", func(error) error { return errHandler }},
	} {
		t.Run(c.name+" undoes the effects, keeps the key with the reason, and acks", func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{})
			out := mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
				inbox.MustTx[*memoryTx](msg.Context()).Write("1")
				if err := inbox.SetResult(msg.Context(), []byte("invoice 17")); err != nil {
					return nil, err
				}
				return nil, c.answer(inbox.Discard(msg.Context(), errOld))
			}), f.message("o1"))
			e, ok := f.store.entry(key("o1"))
			if !ok || e.Discard != errOld.Error() || e.Result != nil {
				t.Errorf("the store has %+v, %t", e, ok)
			}
			if len(f.store.committed()) > 0 || len(out) > 0 {
				t.Errorf("effects %q, messages %v", f.store.committed(), uuids(out))
			}
			if e := f.watcher.last(t); e.Outcome != inbox.Discarded || e.Err != nil || e.Produced != 0 {
				t.Errorf("the observers saw %+v", e)
			}
		})
	}
	t.Run("and yet returning messages fails, with nothing kept", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		out, err := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			return []*message.Message{message.NewMessage("m1", nil)}, inbox.Discard(msg.Context(), errOld)
		})(f.message("o1"))
		if !errors.Is(err, inbox.ErrProduced) || !inbox.Permanent(err) || len(out) > 0 {
			t.Errorf("got %v, %v", uuids(out), err)
		}
		if _, ok := f.store.entry(key("o1")); ok {
			t.Error("the key is kept")
		}
	})
	t.Run("and yet publishing through a bus fails, with nothing sent", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		sent := &published{}
		bus := f.inbox.Publisher("events", sent)
		_, err := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			if err := bus.Publish("events", message.NewMessageWithContext(msg.Context(), "e1", nil)); err != nil {
				return nil, err
			}
			return nil, inbox.Discard(msg.Context(), errOld)
		})(f.message("o1"))
		if !errors.Is(err, inbox.ErrProduced) || len(sent.all()) > 0 {
			t.Errorf("got %v; sent %v", err, sent.all())
		}
	})
	t.Run("a panic after it is a panic, and nothing is kept", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		got := undisturbed(f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			panic(inbox.Discard(msg.Context(), errOld))
		}), f.message("o1"))
		if _, ok := f.store.entry(key("o1")); ok || got == nil {
			t.Errorf("key kept: %t; panic %v", ok, got)
		}
	})
	t.Run("its duplicate is acked, and OnDuplicate sees the reason", func(t *testing.T) {
		t.Parallel()
		var seen inbox.Entry
		f := setup(t, inboxmw.Handler{OnDuplicate: func(_ *message.Message, e inbox.Entry) error {
			seen = e
			return nil
		}})
		h := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			return nil, inbox.Discard(msg.Context(), errOld)
		})
		mustHandle(t, h, f.message("o1"))
		mustHandle(t, h, f.message("o1"))
		wantEqual(t, "reason", seen.Discard, errOld.Error())
		wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{inbox.Discarded, inbox.Duplicate})
	})
	t.Run("that another delivery came before is answered as its duplicate", func(t *testing.T) {
		t.Parallel()
		first := setup(t, inboxmw.Handler{})
		mustHandle(t, first.wrap(produces("m1")), first.message("o1"))
		entry, _ := first.store.entry(key("o1"))
		w := &watcher{}
		in := inboxmw.MustNew(&overtaken{by: entry}, &inboxmw.Config{
			Observers: []inbox.Observer{w},
			Handler: inboxmw.Handler{OnDuplicate: func(msg *message.Message, _ inbox.Entry) error {
				if _, err := inbox.Tx[*memoryTx](msg.Context()); !errors.Is(err, inbox.ErrNoTx) {
					t.Errorf("the hook has the context of the handler: %v", err)
				}
				return nil
			}},
		})
		out := mustHandle(t, in.Middleware(func(msg *message.Message) ([]*message.Message, error) {
			return nil, inbox.Discard(msg.Context(), errOld)
		}), first.message("o1"))
		wantEqual(t, "messages", uuids(out), []string{"m1"})
		wantEqual(t, "outcomes", w.outcomes(t), []inbox.Outcome{inbox.Duplicate})
	})
	t.Run("of one attempt does not reach the next", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		attempts := 0
		mustHandle(t, retry(2)(f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			if attempts++; attempts == 1 {
				_ = inbox.Discard(msg.Context(), errOld)
				return []*message.Message{message.NewMessage("m1", nil)}, nil
			}
			return writes("1")(msg)
		})), f.message("o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"1"})
	})
}
