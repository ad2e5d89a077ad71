package inboxmw_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestProducedMessagesThatCannotBeKeptFailBeforeTheCommit(t *testing.T) {
	t.Parallel()
	policies := map[string]inboxmw.ProducedPolicy{
		"Replay": inboxmw.Replay(),
		"Outbox": inboxmw.Outbox(func(*memoryTx) (message.Publisher, error) { return nil, errors.New("opened") }),
		"Reject": inboxmw.Reject(),
	}
	for _, c := range []struct {
		name      string
		handler   message.HandlerFunc
		topicless bool
		says      []string
		is        error
	}{
		{name: "no topic", handler: produces("m1"), topicless: true, says: []string{"no publish topic", "AddHandler"}, is: inbox.ErrNoTopic},
		{name: "an empty UUID", handler: produces("m1", ""), says: []string{"message 1", "no UUID", "message.NewMessage"}, is: inbox.ErrProduced},
		{name: "two equal UUIDs", handler: produces("m1", "m2", "m1"), says: []string{"message 2", "give each its own"}, is: inbox.ErrProduced},
		{name: "a nil message", handler: func(*message.Message) ([]*message.Message, error) {
			return []*message.Message{nil}, nil
		}, says: []string{"message 0 is nil"}, is: inbox.ErrProduced},
		{name: "the consumed message itself", handler: func(msg *message.Message) ([]*message.Message, error) {
			return []*message.Message{msg}, nil
		}, says: []string{"consumed message", "Copy"}, is: inbox.ErrProduced},
		{name: "the consumed message after its UUID was changed", handler: func(msg *message.Message) ([]*message.Message, error) {
			msg.UUID = "m1"
			return []*message.Message{msg}, nil
		}, says: []string{"consumed message"}, is: inbox.ErrProduced},
	} {
		for policy, p := range policies {
			t.Run(fmt.Sprintf("%s with %s", c.name, policy), func(t *testing.T) {
				t.Parallel()
				f := setup(t, inboxmw.Handler{Produced: p})
				if c.topicless {
					f.ctx = routed(t, handlerName, "")
				}
				out, err := f.wrap(c.handler)(f.message("o1"))
				wantText(t, err, c.says...)
				if !errors.Is(err, c.is) {
					t.Errorf("%v is not %v", err, c.is)
				}
				// Wiring is mended by a deployment; what a handler makes of a message is not.
				if got, want := inbox.Permanent(err), c.is == inbox.ErrProduced; got != want { //nolint:errorlint // the sentinel of the table
					t.Errorf("%v: permanent %t, want %t", err, got, want)
				}
				if _, ok := f.store.entry(key("o1")); ok || len(f.store.committed()) > 0 || len(out) > 0 {
					t.Errorf("key kept: %t, effects %q, messages %v", ok, f.store.committed(), uuids(out))
				}
			})
		}
	}
}

func TestCopyOfTheConsumedMessageCanBeProduced(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	out := mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
		return []*message.Message{msg.Copy()}, nil
	}), f.message("o1"))
	wantEqual(t, "messages", uuids(out), []string{"o1"})
}

func TestMaxRecord(t *testing.T) {
	t.Parallel()
	large := func(*message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("m1", make([]byte, 1000))}, nil
	}
	for _, c := range []struct {
		name string
		most int
		ok   bool
	}{
		{"a record above it is refused", 999, false},
		{"a record below it is kept", 1100, true},
		{"negative is no bound", -1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{MaxRecord: c.most})
			_, err := f.wrap(large)(f.message("o1"))
			if c.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantText(t, err, "MaxRecord (999)", "max_allowed_packet")
			if !errors.Is(err, inbox.ErrProduced) || !inbox.Permanent(err) {
				t.Errorf("got %v", err)
			}
			if _, ok := f.store.entry(key("o1")); ok {
				t.Error("the key is kept")
			}
		})
	}
	t.Run("it does not bound what goes to an outbox", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{MaxRecord: 1, Produced: inboxmw.Outbox(func(*memoryTx) (message.Publisher, error) { return &published{}, nil })})
		mustHandle(t, f.wrap(large), f.message("o1"))
	})
}

func TestReleasedMessagesCarryNeitherTransactionNorCancellation(t *testing.T) {
	t.Parallel()
	type own struct{}
	f := setup(t, inboxmw.Handler{})
	ctx, cancel := context.WithCancel(f.ctx)
	msg := deliverable(ctx, "o1")
	out := mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
		theirs := context.WithValue(t.Context(), own{}, 1)
		return []*message.Message{
			message.NewMessageWithContext(context.WithValue(msg.Context(), own{}, 1), "m1", nil),
			message.NewMessageWithContext(theirs, "m2", nil),
			message.NewMessage("m3", nil),
		}, nil
	}), msg)
	cancel()
	for _, m := range out {
		if err := m.Context().Err(); err != nil {
			t.Errorf("%s: the context is %v", m.UUID, err)
		}
		if tx, err := inbox.Tx[*memoryTx](m.Context()); !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("%s: got %v, %v", m.UUID, tx, err)
		}
		if got := m.Context().Value(own{}) != nil; got != (m.UUID != "m3") {
			t.Errorf("%s: the handler's own value is there: %t", m.UUID, got)
		}
	}
}

// outboxes open a publisher that writes with the transaction.
func outboxes(opened *[]*memoryTx) func(tx *memoryTx) (message.Publisher, error) {
	return func(tx *memoryTx) (message.Publisher, error) {
		*opened = append(*opened, tx)
		return &outboxPublisher{tx: tx}, nil
	}
}

type outboxPublisher struct {
	tx     *memoryTx
	closed bool
}

func (p *outboxPublisher) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		if err := m.Context().Err(); err != nil {
			return err
		}
		p.tx.Write(topic + "/" + m.UUID)
		p.tx.outbox = append(p.tx.outbox, m)
	}
	return nil
}

func (p *outboxPublisher) Close() error {
	p.closed = true
	p.tx.Write("closed")
	return nil
}

func TestOutbox(t *testing.T) {
	t.Parallel()

	t.Run("publishes within the transaction, and the router gets none", func(t *testing.T) {
		t.Parallel()
		var opened []*memoryTx
		f := setup(t, inboxmw.Handler{Produced: inboxmw.Outbox(outboxes(&opened))})
		var handlers *memoryTx
		out := mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			handlers = inbox.MustTx[*memoryTx](msg.Context())
			return produces("m1", "m2")(msg)
		}), f.message("o1"))
		wantEqual(t, "messages", uuids(out), []string(nil))
		// Not closed, or it would stand among the effects.
		wantEqual(t, "effects", f.store.committed(), []string{"o1", "mails/m1", "mails/m2"})
		if len(opened) != 1 || opened[0] != handlers {
			t.Errorf("it was opened %d times", len(opened))
		}
		if e := f.watcher.last(t); e.Outcome != inbox.Processed || e.Produced != 0 {
			t.Errorf("the observers saw %+v", e)
		}
	})
	t.Run("a duplicate publishes nothing more", func(t *testing.T) {
		t.Parallel()
		var opened []*memoryTx
		f := setup(t, inboxmw.Handler{Produced: inboxmw.Outbox(outboxes(&opened))})
		h := f.wrap(produces("m1"))
		mustHandle(t, h, f.message("o1"))
		wantEqual(t, "messages", uuids(mustHandle(t, h, f.message("o1"))), []string(nil))
		wantEqual(t, "effects", f.store.committed(), []string{"o1", "mails/m1"})
		if e, _ := f.store.entry(key("o1")); e.Record != nil {
			t.Errorf("the record has %d bytes", len(e.Record))
		}
	})
	t.Run("is not opened for a handler that produces nothing", func(t *testing.T) {
		t.Parallel()
		var opened []*memoryTx
		f := setup(t, inboxmw.Handler{Produced: inboxmw.Outbox(outboxes(&opened))})
		mustHandle(t, f.wrap(produces()), f.message("o1"))
		if len(opened) != 0 {
			t.Errorf("it was opened %d times", len(opened))
		}
	})
	t.Run("finds the transaction by an interface that it satisfies", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{Produced: inboxmw.Outbox(func(tx writer) (message.Publisher, error) {
			tx.Write("by interface")
			return &published{}, nil
		})})
		mustHandle(t, f.wrap(produces("m1")), f.message("o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"o1", "by interface"})
	})
	t.Run("messages without a context get the handler's, so that their SQL ends with it", func(t *testing.T) {
		t.Parallel()
		type own struct{}
		theirs := context.WithValue(t.Context(), own{}, 1)
		f := setup(t, inboxmw.Handler{Produced: inboxmw.Outbox(outboxes(new([]*memoryTx)))})
		var tx *memoryTx
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			tx = inbox.MustTx[*memoryTx](msg.Context()) //nolint:contextcheck // the handler's context is that of its message
			return []*message.Message{message.NewMessage("m1", nil), message.NewMessageWithContext(theirs, "m2", nil)}, nil
		}), f.message("o1"))
		if tx.outbox[0].Context().Err() == nil || tx.outbox[1].Context() != theirs {
			t.Error("the contexts are not the handler's, which is over, and the message's own")
		}
	})

	errOutbox := errors.New("the outbox is full")
	for name, c := range map[string]struct {
		policy inboxmw.ProducedPolicy
		is     error
	}{
		"an error of open": {inboxmw.Outbox(func(*memoryTx) (message.Publisher, error) { return nil, errOutbox }), errOutbox},
		"an error of the publisher": {inboxmw.Outbox(func(*memoryTx) (message.Publisher, error) {
			return &published{fails: errOutbox}, nil
		}), errOutbox},
		"a type that the store does not offer": {inboxmw.Outbox(func(*fixture) (message.Publisher, error) { return nil, nil }), inbox.ErrNoTx}, //nolint:nilnil // not reached
	} {
		t.Run(name+" rolls back", func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{Produced: c.policy})
			out, err := f.wrap(produces("m1"))(f.message("o1"))
			if !errors.Is(err, c.is) {
				t.Errorf("got %v", err)
			}
			wantText(t, err, "outbox")
			if _, ok := f.store.entry(key("o1")); ok || len(f.store.committed()) > 0 || len(out) > 0 {
				t.Errorf("key kept: %t, effects %q, messages %v", ok, f.store.committed(), uuids(out))
			}
		})
	}
	t.Run("the error for a type that the store does not offer names what it offers", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{Produced: inboxmw.Outbox(func(*fixture) (message.Publisher, error) { return nil, nil })}) //nolint:nilnil // not reached
		_, err := f.wrap(produces("m1"))(f.message("o1"))
		wantText(t, err, "*inboxmw_test.fixture", "*inboxmw_test.memoryTx")
	})
}

func TestReject(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{Produced: inboxmw.Reject()})
	out, err := f.wrap(produces("m1"))(f.message("o1"))
	if !errors.Is(err, inbox.ErrProduced) || !inbox.Permanent(err) {
		t.Errorf("got %v", err)
	}
	wantText(t, err, "Reject", "Replay", "Outbox")
	if _, ok := f.store.entry(key("o1")); ok || len(f.store.committed()) > 0 || len(out) > 0 {
		t.Errorf("key kept: %t, effects %q, messages %v", ok, f.store.committed(), uuids(out))
	}
	mustHandle(t, f.wrap(produces()), f.message("o2"))
	if _, ok := f.store.entry(key("o2")); !ok {
		t.Error("the key of one that produces nothing is not kept")
	}
	wantEqual(t, "effects of one that produces nothing", f.store.committed(), []string{"o2"})
}
