package testutil

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

func messageCases() []testCase {
	return []testCase{
		{name: "rule 12: the message leaves with the context that it came with, on every path", run: messageContext},
		{name: "rule 12: without a commit the message is as before, whatever the handler made of it", run: messageRestored},
		{name: "rule 1: a message that a failed handler changed is still the same message", run: messageSame},
	}
}

func messageContext(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	fail := map[string]func(ctx context.Context) error{
		"processed": func(context.Context) error { return nil },
		"failed":    func(context.Context) error { return errHandler },
		"panic":     func(context.Context) error { panic("no paper") },
		"discarded": func(ctx context.Context) error { return inbox.Discard(ctx, errHandler) },
	}
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		return nil, fail[msg.UUID](msg.Context())
	})
	for _, id := range []string{"processed", "processed", "failed", "panic", "discarded", "discarded"} {
		if s := r.deliver(order(id)); !s.restored {
			t.Errorf("%s: the message left with another context", id)
		}
	}
}

// vandal changes all it can of a message, but for the payload's bytes.
func vandal(msg *message.Message) {
	msg.UUID = "changed"
	msg.Metadata.Set("shop", "south")
	msg.Metadata.Set("more", "of it")
	msg.Payload = []byte("changed")
}

func messageRestored(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	ends := map[string]func() error{
		"failed": func() error { return errHandler },
		"panic":  func() error { panic("no paper") },
	}
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		end := ends[msg.UUID]
		vandal(msg)
		return nil, end()
	})
	for id := range ends {
		msg, want := order(id), order(id)
		if s := r.deliver(msg); s.acked {
			t.Errorf("%s: the message was acked", id)
		}
		if !msg.Equals(want) || !bytes.Equal(msg.Payload, want.Payload) {
			t.Errorf("%s: got %q %v %q back, want %q %v %q", id, msg.UUID, msg.Metadata, msg.Payload, want.UUID, want.Metadata, want.Payload)
		}
	}
}

// messageSame redelivers as brokers in one process do: a copy of the object that
// was nacked.
func messageSame(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	fails := true
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		if !msg.Equals(order("1")) {
			t.Errorf("the handler got %q %v %q", msg.UUID, msg.Metadata, msg.Payload)
		}
		vandal(msg)
		if err := in.Write(msg.Context(), "effect"); err != nil {
			return nil, err
		}
		if fails {
			return nil, errHandler
		}
		return nil, nil
	})
	msg := order("1")
	r.deliver(msg).mustNack(t, errHandler)
	fails = false
	r.deliver(msg.Copy()).mustAck(t)
	r.deliver(order("1")).mustAck(t)
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 1)
}

// recorder is an observer that keeps what it sees.
type recorder struct {
	mu     sync.Mutex
	starts int
	ends   []inbox.Event
}

// DeliveryStart implements [inbox.Observer].
func (e *recorder) DeliveryStart(ctx context.Context, _ inbox.Delivery) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starts++
	return ctx
}

// DeliveryEnd implements [inbox.Observer].
func (e *recorder) DeliveryEnd(_ context.Context, end inbox.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, end)
}

func (e *recorder) mustBe(t *testing.T, outcomes ...inbox.Outcome) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.starts != len(outcomes) || len(e.ends) != len(outcomes) {
		t.Fatalf("the observer saw %d starts and %d ends, want %d", e.starts, len(e.ends), len(outcomes))
	}
	for i, want := range outcomes {
		if got := e.ends[i].Outcome; got != want {
			t.Errorf("delivery %d: got outcome %q, want %q", i+1, got, want)
		}
	}
}
