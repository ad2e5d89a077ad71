package inboxmw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// tells is a handler with one effect that publishes events through a bus.
func tells(bus message.Publisher, uuids ...string) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		inbox.MustTx[*memoryTx](msg.Context()).Write(msg.UUID)
		for _, uuid := range uuids {
			if err := bus.Publish("events", message.NewMessageWithContext(msg.Context(), uuid, []byte(uuid))); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

func TestPublisher(t *testing.T) {
	t.Parallel()

	t.Run("publishes after the commit, and not when the delivery fails", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		bus := f.inbox.Publisher("events", sent)
		h := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			out, err := tells(bus, "e1", "e2")(msg)
			wantEqual(t, "sent before the commit", sent.all(), []string(nil))
			return out, err
		})
		f.store.fail(inbox.OpCommit, errors.New("the connection broke"))
		if _, err := h(f.message("o1")); err == nil {
			t.Error("no error")
		}
		wantEqual(t, "sent without a commit", sent.all(), []string(nil))
		f.store.fail(inbox.OpCommit, nil)
		if out := mustHandle(t, h, f.message("o1")); len(out) > 0 {
			t.Errorf("the router gets %v", uuids(out))
		}
		wantEqual(t, "sent", sent.all(), []string{"events/e1", "events/e2"})
		if e := f.watcher.last(t); e.Produced != 2 {
			t.Errorf("the observers saw %+v", e)
		}
	})
	t.Run("publishes again for a duplicate", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		h := f.wrap(tells(f.inbox.Publisher("events", sent), "e1"))
		mustHandle(t, h, f.message("o1"))
		mustHandle(t, h, f.message("o1"))
		wantEqual(t, "sent", sent.all(), []string{"events/e1", "events/e1"})
		wantEqual(t, "effects", f.store.committed(), []string{"o1"})
	})
	t.Run("that fails has the message nacked, and publishes with the next delivery", func(t *testing.T) {
		t.Parallel()
		errBroker := errors.New("the broker is gone")
		f, sent := setup(t, inboxmw.Handler{}), &published{fails: errBroker}
		h := f.wrap(tells(f.inbox.Publisher("events", sent), "e1"))
		_, err := h(f.message("o1"))
		if !errors.Is(err, errBroker) {
			t.Errorf("got %v", err)
		}
		wantText(t, err, `"events"`, key("o1").String())
		sent.failWith(nil)
		mustHandle(t, h, f.message("o1"))
		wantEqual(t, "sent", sent.all(), []string{"events/e1"})
		wantEqual(t, "effects", f.store.committed(), []string{"o1"})
	})
	t.Run("keeps a copy, so that what is changed later is not sent", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		bus := f.inbox.Publisher("events", sent)
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			e := message.NewMessageWithContext(msg.Context(), "e1", []byte("1"))
			err := bus.Publish("events", e)
			mutate(e)
			return nil, err
		}), f.message("o1"))
		wantEqual(t, "sent", sent.all(), []string{"events/e1"})
	})
	t.Run("stands in one record with returned messages", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		bus := f.inbox.Publisher("events", sent)
		h := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			if _, err := tells(bus, "e1")(msg); err != nil {
				return nil, err
			}
			return []*message.Message{message.NewMessage("m1", nil)}, nil
		})
		for range 2 {
			wantEqual(t, "messages", uuids(mustHandle(t, h, f.message("o1"))), []string{"m1"})
		}
		wantEqual(t, "sent", sent.all(), []string{"events/e1", "events/e1"})
	})
	t.Run("needs no publish topic of the handler", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		f.ctx = routed(t, handlerName, "")
		h := f.wrap(tells(f.inbox.Publisher("events", sent), "e1"))
		mustHandle(t, h, f.message("o1"))
		mustHandle(t, h, f.message("o1"))
		wantEqual(t, "sent", sent.all(), []string{"events/e1", "events/e1"})
	})
	t.Run("refuses equal UUIDs before the commit", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		_, err := f.wrap(tells(f.inbox.Publisher("events", sent), "e1", "e1"))(f.message("o1"))
		if !errors.Is(err, inbox.ErrProduced) || len(sent.all()) > 0 {
			t.Errorf("got %v; sent %v", err, sent.all())
		}
	})
	t.Run("without the context of a protected handler publishes at once", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		bus := f.inbox.Publisher("events", sent)
		mustHandle(t, f.wrap(func(*message.Message) ([]*message.Message, error) {
			err := bus.Publish("events", message.NewMessage("e1", nil))
			wantEqual(t, "sent", sent.all(), []string{"events/e1"})
			return nil, err
		}), f.message("o1"))
	})
	t.Run("in an unprotected handler publishes at once", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{Unprotected: true}), &published{}
		bus := f.inbox.Publisher("events", sent)
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			err := bus.Publish("events", message.NewMessageWithContext(msg.Context(), "e1", nil))
			wantEqual(t, "sent", sent.all(), []string{"events/e1"})
			return nil, err
		}), f.message("o1"))
	})
	t.Run("of a delivery that is over refuses", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		bus := f.inbox.Publisher("events", sent)
		var ctx context.Context
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			ctx = msg.Context() //nolint:fatcontext // looked at when it is over
			return nil, nil
		}), f.message("o1"))
		if err := bus.Publish("events", message.NewMessageWithContext(ctx, "e1", nil)); !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v", err)
		}
		wantEqual(t, "sent", sent.all(), []string(nil))
	})
	t.Run("of another inbox refuses", func(t *testing.T) {
		t.Parallel()
		f, sent := setup(t, inboxmw.Handler{}), &published{}
		_, err := f.wrap(tells(inboxmw.MustNew(f.store, nil).Publisher("events", sent), "e1"))(f.message("o1"))
		wantText(t, err, "another inbox")
		wantEqual(t, "sent", sent.all(), []string(nil))
	})
	t.Run("closes the wrapped one", func(t *testing.T) {
		t.Parallel()
		sent := &published{}
		if err := inboxmw.MustNew(newMemory(), nil).Publisher("events", sent).Close(); err != nil || sent.closed != 1 {
			t.Errorf("closed %d times, %v", sent.closed, err)
		}
	})
	for name, wrong := range map[string]func(in *inboxmw.Inbox){
		"no name":        func(in *inboxmw.Inbox) { in.Publisher("", &published{}) },
		"no publisher":   func(in *inboxmw.Inbox) { in.Publisher("events", nil) },
		"one name twice": func(in *inboxmw.Inbox) { in.Publisher("a", &published{}); in.Publisher("a", &published{}) },
	} {
		t.Run("with "+name+" panics at start", func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			wrong(inboxmw.MustNew(newMemory(), nil))
		})
	}
}

func TestTxPublisher(t *testing.T) {
	t.Parallel()

	t.Run("publishes within the transaction", func(t *testing.T) {
		t.Parallel()
		f, outside := setup(t, inboxmw.Handler{}), &published{}
		h := f.wrap(tells(inboxmw.TxPublisher(outboxes(new([]*memoryTx)), outside), "e1", "e2"))
		mustHandle(t, h, f.message("o1"))
		mustHandle(t, h, f.message("o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"o1", "events/e1", "events/e2"})
		wantEqual(t, "sent", outside.all(), []string(nil))
	})
	t.Run("gives messages without a transaction to outside", func(t *testing.T) {
		t.Parallel()
		outside := &published{}
		bus := inboxmw.TxPublisher(outboxes(new([]*memoryTx)), outside)
		if err := bus.Publish("events", message.NewMessage("e1", nil)); err != nil {
			t.Error(err)
		}
		wantEqual(t, "sent", outside.all(), []string{"events/e1"})
	})
	t.Run("without outside fails for them", func(t *testing.T) {
		t.Parallel()
		bus := inboxmw.TxPublisher(outboxes(new([]*memoryTx)), nil)
		if err := bus.Publish("events", message.NewMessage("e1", nil)); !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("got %v", err)
		}
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("after the delivery fails, and does not go outside", func(t *testing.T) {
		t.Parallel()
		f, outside := setup(t, inboxmw.Handler{}), &published{}
		bus := inboxmw.TxPublisher(outboxes(new([]*memoryTx)), outside)
		var ctx context.Context
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			ctx = msg.Context() //nolint:fatcontext // looked at when it is over
			return nil, nil
		}), f.message("o1"))
		if err := bus.Publish("events", message.NewMessageWithContext(ctx, "e1", nil)); !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v", err)
		}
		wantEqual(t, "sent", outside.all(), []string(nil))
	})
	t.Run("closes outside", func(t *testing.T) {
		t.Parallel()
		outside := &published{}
		if err := inboxmw.TxPublisher(outboxes(new([]*memoryTx)), outside).Close(); err != nil || outside.closed != 1 {
			t.Errorf("closed %d times, %v", outside.closed, err)
		}
	})
}
