package inboxmw_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// later returns what another release of the program does with a duplicate of o1:
// other settings on the same store, and perhaps another topic.
func later(t *testing.T, f *fixture, topic string, h inboxmw.Handler) (out []*message.Message, next *fixture, err error) {
	t.Helper()
	next = &fixture{store: f.store, watcher: &watcher{}, logs: &logs{}, ctx: routed(t, handlerName, topic)}
	next.inbox = inboxmw.MustNew(f.store, &inboxmw.Config{Handler: h, Observers: []inbox.Observer{next.watcher}, Logger: next.logs})
	out, err = next.wrap(func(*message.Message) ([]*message.Message, error) {
		t.Error("the handler runs for a duplicate")
		return nil, nil
	})(next.message("o1"))
	return out, next, err
}

// once delivers o1, for which the handler produces m1 and m2.
func once(t *testing.T) *fixture {
	t.Helper()
	f := setup(t, inboxmw.Handler{})
	mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
		out, err := produces("m1", "m2")(msg)
		out[0].Payload = message.Payload{0, 255, 10}
		out[0].Metadata = message.Metadata{"to": "ann@example.com", "empty": "", "ключ": "é"}
		out[1].Metadata, out[1].Payload = nil, nil
		return out, err
	}), f.message("o1"))
	return f
}

func TestReplay(t *testing.T) {
	t.Parallel()

	t.Run("the first delivery hands the handler's own messages to the router", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		var made []*message.Message
		out := mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			var err error
			made, err = produces("m1", "m2")(msg)
			return made, err
		}), f.message("o1"))
		if len(out) != 2 || out[0] != made[0] || out[1] != made[1] {
			t.Errorf("got %v", uuids(out))
		}
		if e := f.watcher.last(t); e.Produced != 2 {
			t.Errorf("the observers saw %+v", e)
		}
	})
	t.Run("a duplicate hands them over again, with the same UUIDs, metadata and payloads", func(t *testing.T) {
		t.Parallel()
		out, next, err := later(t, once(t), publishTopic, inboxmw.Handler{})
		if err != nil {
			t.Fatal(err)
		}
		want := message.NewMessage("m1", message.Payload{0, 255, 10})
		want.Metadata = message.Metadata{"to": "ann@example.com", "empty": "", "ключ": "é"}
		if len(out) != 2 || !out[0].Equals(want) || !out[1].Equals(message.NewMessage("m2", nil)) {
			t.Errorf("got %v", out)
		}
		if e := next.watcher.last(t); e.Outcome != inbox.Duplicate || e.Produced != 2 {
			t.Errorf("the observers saw %+v", e)
		}
		next.logs.wantLines(t, 0, "info")
	})
	t.Run("each duplicate gets messages of its own", func(t *testing.T) {
		t.Parallel()
		f := once(t)
		first, _, err := later(t, f, publishTopic, inboxmw.Handler{})
		if err != nil || len(first) != 2 {
			t.Fatalf("got %v, %v", uuids(first), err)
		}
		first[0].Payload[0] = 'X'
		second, _, err := later(t, f, publishTopic, inboxmw.Handler{})
		if err != nil || len(second) != 2 || second[0].Payload[0] != 0 {
			t.Errorf("got %v, %v", second, err)
		}
	})
	t.Run("the policy of today does not matter for a record", func(t *testing.T) {
		t.Parallel()
		f := once(t)
		for _, p := range []inboxmw.ProducedPolicy{
			inboxmw.Reject(),
			inboxmw.Outbox(func(*memoryTx) (message.Publisher, error) { return nil, errors.New("opened") }),
		} {
			out, _, err := later(t, f, publishTopic, inboxmw.Handler{Produced: p, MaxRecord: 1})
			if err != nil {
				t.Errorf("%T: %v", p, err)
			}
			wantEqual(t, "messages", uuids(out), []string{"m1", "m2"})
		}
	})
	t.Run("a topic that has changed is logged, and the router's is taken", func(t *testing.T) {
		t.Parallel()
		out, next, err := later(t, once(t), "letters", inboxmw.Handler{})
		if err != nil || len(out) != 2 {
			t.Fatalf("got %v, %v", uuids(out), err)
		}
		next.logs.wantLines(t, 2, "info", "another topic", "letters", publishTopic, handlerName)
	})
	t.Run("a handler without a topic by now fails, and names the record's", func(t *testing.T) {
		t.Parallel()
		out, next, err := later(t, once(t), "", inboxmw.Handler{})
		if !errors.Is(err, inbox.ErrNoTopic) || len(out) > 0 {
			t.Errorf("got %v, %v", uuids(out), err)
		}
		wantText(t, err, `"mails"`, "DropUnroutable", key("o1").String())
		if e := next.watcher.last(t); e.Outcome != inbox.Failed || !errors.Is(e.Err, inbox.ErrNoTopic) || e.Produced != 0 {
			t.Errorf("the observers saw %+v", e)
		}
	})
	t.Run("with DropUnroutable it is acked, which is logged", func(t *testing.T) {
		t.Parallel()
		out, next, err := later(t, once(t), "", inboxmw.Handler{})
		if err == nil {
			t.Fatalf("got %v", uuids(out))
		}
		in := inboxmw.MustNew(next.store, &inboxmw.Config{
			Handlers: map[string]inboxmw.Handler{handlerName: {DropUnroutable: true}}, Logger: next.logs,
		})
		wantEqual(t, "messages", uuids(mustHandle(t, in.Middleware(writes("x")), next.message("o1"))), []string(nil))
		next.logs.wantLines(t, 2, "info", "dropped", handlerName)
	})
	t.Run("DropUnroutable drops nothing that has a topic", func(t *testing.T) {
		t.Parallel()
		f := once(t)
		in := inboxmw.MustNew(f.store, &inboxmw.Config{Handlers: map[string]inboxmw.Handler{handlerName: {DropUnroutable: true}}})
		wantEqual(t, "messages", uuids(mustHandle(t, in.Middleware(writes("x")), f.message("o1"))), []string{"m1", "m2"})
	})
	t.Run("a record of an unknown version is an error, never dropped", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1")}, Record: []byte{99, 1, 2}})
		in := inboxmw.MustNew(f.store, &inboxmw.Config{Handlers: map[string]inboxmw.Handler{handlerName: {DropUnroutable: true}}})
		out, err := in.Middleware(writes("x"))(f.message("o1"))
		if !errors.Is(err, inbox.ErrRecord) || len(out) > 0 {
			t.Errorf("got %v, %v", uuids(out), err)
		}
		wantText(t, err, "version 99", key("o1").String())
	})
	t.Run("a record for a publisher that the inbox does not have is an error that names it", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		bus := f.inbox.Publisher("events", &published{})
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			return nil, bus.Publish("invoices.made", message.NewMessageWithContext(msg.Context(), "e1", nil))
		}), f.message("o1"))
		out, _, err := later(t, f, publishTopic, inboxmw.Handler{})
		if !errors.Is(err, inbox.ErrRecord) || len(out) > 0 {
			t.Errorf("got %v, %v", uuids(out), err)
		}
		wantText(t, err, `"events"`, "Inbox.Publisher", key("o1").String())
	})
	t.Run("of a run that the store undid for an earlier one, nothing is added to the record", func(t *testing.T) {
		t.Parallel()
		f := once(t)
		entry, _ := f.store.entry(key("o1"))
		in := inboxmw.MustNew(&overtaken{by: entry}, nil)
		sent := &published{}
		bus := in.Publisher("events", sent)
		out := mustHandle(t, in.Middleware(func(msg *message.Message) ([]*message.Message, error) {
			if _, err := tells(bus, "e3")(msg); err != nil {
				return nil, err
			}
			return produces("m3")(msg)
		}), f.message("o1"))
		wantEqual(t, "messages", uuids(out), []string{"m1", "m2"})
		wantEqual(t, "sent through the bus", sent.all(), []string(nil))
	})
	t.Run("a handler that produces nothing has no record", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		mustHandle(t, f.wrap(produces()), f.message("o1"))
		if e, ok := f.store.entry(key("o1")); !ok || e.Record != nil {
			t.Errorf("got %v, %t", e.Record, ok)
		}
	})
	t.Run("messages of a commit that failed go nowhere", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		f.store.fail(inbox.OpCommit, errors.New("the connection broke"))
		out, err := f.wrap(produces("m1"))(f.message("o1"))
		if err == nil || len(out) > 0 {
			t.Errorf("got %v, %v", uuids(out), err)
		}
	})
}

func TestOnDuplicate(t *testing.T) {
	t.Parallel()

	t.Run("gets the entry with the result of the first delivery, and no transaction", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			return nil, inbox.SetResult(msg.Context(), []byte("invoice 17"))
		}), f.message("o1"))
		calls := 0
		_, _, err := later(t, f, publishTopic, inboxmw.Handler{OnDuplicate: func(msg *message.Message, e inbox.Entry) error {
			calls++
			if string(e.Result) != "invoice 17" || e.Key != key("o1") || e.EventType != "OrderPlaced" || e.Age == 0 || e.ProcessedAt.IsZero() {
				t.Errorf("got %+v", e)
			}
			if _, err := inbox.Tx[*memoryTx](msg.Context()); !errors.Is(err, inbox.ErrNoTx) {
				t.Errorf("got %v", err)
			}
			if msg.UUID != "o1" {
				t.Errorf("got message %s", msg.UUID)
			}
			return nil
		}})
		if err != nil || calls != 1 {
			t.Errorf("%d calls, %v", calls, err)
		}
	})
	t.Run("is called before the record is replayed, and its error nacks the message", func(t *testing.T) {
		t.Parallel()
		errHook := errors.New("not yet")
		out, next, err := later(t, once(t), publishTopic, inboxmw.Handler{OnDuplicate: func(*message.Message, inbox.Entry) error { return errHook }})
		if !errors.Is(err, errHook) || len(out) > 0 {
			t.Errorf("got %v, %v", uuids(out), err)
		}
		if e := next.watcher.last(t); e.Outcome != inbox.Failed || !errors.Is(e.Err, errHook) {
			t.Errorf("the observers saw %+v", e)
		}
	})
	t.Run("is not called for a first delivery", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{OnDuplicate: func(*message.Message, inbox.Entry) error { return errHandler }})
		mustHandle(t, f.wrap(writes("1")), f.message("o1"))
	})
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	_, next, err := later(t, once(t), publishTopic, inboxmw.Handler{})
	if err != nil {
		t.Fatal(err)
	}
	lines := next.logs.having("debug", "duplicate", handlerName, "o1", key("o1").String(), "3m0s")
	if len(lines) != 1 || len(next.logs.lines) != 1 || strings.Contains(lines[0], `"order"`) {
		t.Errorf("logged\n%s", strings.Join(next.logs.lines, "\n"))
	}
}
