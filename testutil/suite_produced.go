package testutil

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func producedCases() []testCase {
	return []testCase{
		{name: "rule 18: produced messages are handed to the router again for a duplicate, as they were", run: producedReplay},
		{name: "rule 18: what could not be published is published by the next delivery, and the effect stays one", run: producedRefused},
		{name: "rule 18: the record of a delivery that failed is not replayed", run: producedFailed},
		{name: "rule 18: Reject fails before the commit", run: producedReject},
		{name: "rule 19: what cannot be kept is an error before the commit", run: producedUnkeepable},
		{name: "rule 19: produced messages carry neither the transaction nor its cancellation", run: producedContext},
	}
}

// invoices are produced messages that a careless encoding would change.
func invoices() []*message.Message {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	plain := message.NewMessage("invoice 1", []byte(`{"invoice":1}`))
	plain.Metadata.Set("currency", "€")
	plain.Metadata.Set("empty", "")
	binary := message.NewMessage(strings.Repeat("long ", 200), all)
	binary.Metadata.Set("\x00\xff", "\xfe\x00")
	return []*message.Message{plain, binary, message.NewMessage("no payload", nil)}
}

func mustPublish(t *testing.T, r *rig, want []*message.Message) {
	t.Helper()
	got := r.sink.taken()
	if len(got) != len(want) {
		t.Fatalf("%d messages were published, want %d", len(got), len(want))
	}
	for i, p := range got {
		if p.topic != topicOut {
			t.Errorf("message %d went to topic %q", i, p.topic)
		}
		if !p.msg.Equals(want[i]) {
			t.Errorf("message %d: got %q %q %q, want %q %q %q", i, p.msg.UUID, p.msg.Metadata, p.msg.Payload, want[i].UUID, want[i].Metadata, want[i].Payload)
		}
	}
}

// producing is a handler with one effect and produced messages.
func (in *Instance) producing(out func() []*message.Message) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		return out(), in.Write(msg.Context(), "effect")
	}
}

func producedReplay(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	r := protected(t, in, nil, in.producing(invoices))
	for range 3 {
		r.deliver(order("1")).mustAck(t)
		mustPublish(t, r, invoices())
		in.mustHave(t, 1, "effect")
	}
}

func producedRefused(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	r := protected(t, in, nil, in.producing(invoices))
	r.sink.refuse = []func() error{
		func() error { return errBroker },
		func() error { panic("the broker's client is broken") },
		func() error { return errBroker },
	}
	for range len(r.sink.refuse) {
		if s := r.deliver(order("1")); s.acked {
			t.Fatal("the message was acked, although its output was not published")
		}
		in.mustHave(t, 1, "effect")
	}
	mustPublish(t, r, nil)
	r.deliver(order("1")).mustAck(t)
	mustPublish(t, r, invoices())
	in.mustHave(t, 1, "effect")
}

func producedFailed(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	runs := 0
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		runs++
		if runs == 1 {
			return invoices(), errHandler
		}
		return invoices()[:1], in.Write(msg.Context(), "effect")
	})
	r.deliver(order("1")).mustNack(t, errHandler)
	mustPublish(t, r, nil)
	for range 2 {
		r.deliver(order("1")).mustAck(t)
		mustPublish(t, r, invoices()[:1])
	}
	in.mustHave(t, 1, "effect")
}

func producedReject(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	c := &inboxmw.Config{Handler: inboxmw.Handler{Produced: inboxmw.Reject()}}
	r := protected(t, in, c, in.producing(invoices))
	r.deliver(order("1")).mustNack(t, inbox.ErrProduced)
	mustPublish(t, r, nil)
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
}

func producedUnkeepable(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	out := map[string]func(msg *message.Message) []*message.Message{
		"the consumed message": func(msg *message.Message) []*message.Message { return []*message.Message{msg} },
		"one UUID twice":       func(msg *message.Message) []*message.Message { return []*message.Message{msg.Copy(), msg.Copy()} },
		"no UUID":              func(*message.Message) []*message.Message { return []*message.Message{message.NewMessage("", nil)} },
		"nil":                  func(*message.Message) []*message.Message { return []*message.Message{nil} },
		"too large": func(*message.Message) []*message.Message {
			return []*message.Message{message.NewMessage("large", make([]byte, 1001))}
		},
	}
	c := &inboxmw.Config{Handler: inboxmw.Handler{MaxRecord: 1000}}
	r := protected(t, in, c, func(msg *message.Message) ([]*message.Message, error) {
		return out[msg.UUID](msg), in.Write(msg.Context(), "effect")
	})
	for id := range out {
		s := r.deliver(order(id))
		s.mustNack(t, inbox.ErrProduced)
		if !inbox.Permanent(s.err) {
			t.Errorf("%s: error %q is not permanent, but the handler will do it again", id, s.err)
		}
	}
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)

	nowhere := newRig(t, inboxmw.MustNew(in.Store, c).Middleware)
	nowhere.router.AddHandler("invoices", topicIn, nowhere.source, "", nowhere.sink, in.producing(invoices))
	nowhere.run()
	nowhere.deliver(order("no topic")).mustNack(t, inbox.ErrNoTopic)
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
}

func producedContext(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	type ctxKey struct{}
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		ctx, cancel := context.WithCancel(context.WithValue(msg.Context(), ctxKey{}, "trace"))
		defer cancel()
		out := message.NewMessageWithContext(ctx, "invoice", nil)
		return []*message.Message{out}, nil
	})
	seen := 0
	r.sink.inspect = func(ctx context.Context) {
		seen++
		if err := ctx.Err(); err != nil {
			t.Errorf("the context of a produced message is done: %v", err)
		}
		if seen == 1 && ctx.Value(ctxKey{}) != "trace" {
			t.Error("the context of a produced message has lost its values")
		}
		for name, lookUp := range h.Handles {
			if err := lookUp(ctx); !errors.Is(err, inbox.ErrNoTx) && !errors.Is(err, inbox.ErrTxEnded) {
				t.Errorf("%s in the context of a produced message: got %v", name, err)
			}
		}
	}
	r.deliver(order("1")).mustAck(t)
	r.deliver(order("1")).mustAck(t)
	if seen != 2 {
		t.Errorf("%d messages were published, want 2", seen)
	}
}
