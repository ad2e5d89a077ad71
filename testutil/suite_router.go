package testutil

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func routerCases() []testCase {
	return []testCase{
		{name: "rule 1: two handlers of one topic each process the message", run: routerTwoHandlers},
		{name: "rule 6: a duplicate is acked", run: routerDuplicate},
		{name: "rule 10: the same inbox twice passes straight through", run: routerSameInbox},
		{name: "rule 10: another inbox on the same message is an error", run: routerOtherInbox},
		{name: "rule 11: the transaction dies with the delivery", run: routerTxEnded},
		{name: "rule 12: an error is nacked, and the next delivery is processed", run: routerError},
		{name: "rule 12: a panic goes on to the outer middleware, and is nacked", run: routerPanic},
		{name: "rule 12: Goexit is nacked", run: routerGoexit},
		{name: "rule 13: a handler that outlives Close within its timeout commits", run: routerClose},
		{name: "rule 14: a handler can set a result and discard a delivery", run: routerResult},
		{name: "rule 15: an early ack is noticed, and the commit goes on", run: routerEarlyAck},
		{name: "rule 22: observers see one start and one end of each delivery", run: routerObservers},
	}
}

// handles is a handler with one effect.
func (in *Instance) handles(id string) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		return nil, in.Write(msg.Context(), id)
	}
}

// protected is a router with one handler behind an inbox on the store.
func protected(t *testing.T, in *Instance, c *inboxmw.Config, h message.HandlerFunc) *rig {
	t.Helper()
	r := newRig(t, inboxmw.MustNew(in.Store, c).Middleware)
	r.handle("invoices", h)
	r.run()
	return r
}

func order(id string) *message.Message {
	msg := message.NewMessage(id, []byte(`{"order":"`+id+`"}`))
	msg.Metadata.Set("shop", "north")
	return msg
}

func routerTwoHandlers(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	r := newRig(t, inboxmw.MustNew(in.Store, nil).Middleware)
	r.handle("invoices", in.handles("invoice"))
	r.handle("stock", in.handles("stock"))
	r.run()
	for range 2 {
		for _, s := range r.deliverAll(order("1")) {
			s.mustAck(t)
		}
		in.mustHave(t, 1, "invoice")
		in.mustHave(t, 1, "stock")
	}
	in.mustKeep(t, 2)
}

func routerDuplicate(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	var events recorder
	r := protected(t, in, &inboxmw.Config{Observers: []inbox.Observer{&events}}, in.handles("effect"))
	for range 3 {
		r.deliver(order("1")).mustAck(t)
	}
	in.mustHave(t, 1, "effect")
	events.mustBe(t, inbox.Processed, inbox.Duplicate, inbox.Duplicate)
}

func routerSameInbox(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	box := inboxmw.MustNew(in.Store, nil)
	r := newRig(t, box.Middleware, box.Middleware)
	r.handle("invoices", in.handles("effect"))
	r.run()
	r.deliver(order("1")).mustAck(t)
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 1)
}

func routerOtherInbox(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	r := newRig(t, inboxmw.MustNew(in.Store, nil).Middleware, inboxmw.MustNew(in.Again(), nil).Middleware)
	r.handle("invoices", in.handles("effect"))
	r.run()
	r.deliver(order("1")).mustNack(t, inbox.ErrNested)
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
}

func routerTxEnded(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for name, own := range map[string]error{"processed": nil, "failed": errHandler} {
		contexts := make(chan context.Context, 1)
		r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
			contexts <- msg.Context()
			return nil, own
		})
		r.deliver(order(name))
		left := await(t, contexts, "the handler's context")
		for handle, lookUp := range h.Handles {
			if err := lookUp(left); !errors.Is(err, inbox.ErrTxEnded) {
				t.Errorf("%s after a %s delivery: got %v, want %q", handle, name, err, inbox.ErrTxEnded)
			}
		}
		if err := inbox.SetResult(left, nil); !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("SetResult after a %s delivery: got %v, want %q", name, err, inbox.ErrTxEnded)
		}
	}
}

func routerError(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	fails := true
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		if err := in.Write(msg.Context(), "effect"); err != nil {
			return nil, err
		}
		if fails {
			return nil, errHandler
		}
		return nil, nil
	})
	s := r.deliver(order("1"))
	s.mustNack(t, errHandler)
	if s.err != errHandler { //nolint:errorlint // it must be that error and no other
		t.Errorf("got error %q, want the handler's as it is", s.err)
	}
	in.mustHave(t, 0, "effect")
	fails = false
	r.deliver(order("1")).mustAck(t)
	in.mustHave(t, 1, "effect")
}

func routerPanic(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	own := &odd{parts: []string{"no", "paper"}}
	panics := true
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		if err := in.Write(msg.Context(), "effect"); err != nil {
			return nil, err
		}
		if panics {
			panic(own)
		}
		return nil, nil
	})
	s := r.deliver(order("1"))
	if s.acked || s.panicked != own {
		t.Fatalf("got acked %v, panic %v, want a nack and the handler's panic", s.acked, s.panicked)
	}
	in.mustHave(t, 0, "effect")
	panics = false
	r.deliver(order("1")).mustAck(t)
	in.mustHave(t, 1, "effect")
}

func routerGoexit(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	exits := true
	r := protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		if err := in.Write(msg.Context(), "effect"); err != nil {
			return nil, err
		}
		if exits {
			runtime.Goexit()
		}
		return nil, nil
	})
	if s := r.deliver(order("1")); s.acked {
		t.Fatal("the message was acked, although the handler did not finish")
	}
	in.mustHave(t, 0, "effect")
	exits = false
	r.deliver(order("1")).mustAck(t)
	in.mustHave(t, 1, "effect")
}

// routerClose closes the router while the handler runs: that cancels the message.
func routerClose(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	entered := make(chan struct{}, 1)
	var r *rig
	r = protected(t, in, nil, func(msg *message.Message) ([]*message.Message, error) {
		entered <- struct{}{}
		<-r.source.ctx.Done()
		return nil, in.Write(msg.Context(), "effect")
	})
	msg := order("1")
	done := async(func() settled { return r.deliver(msg) })
	await(t, entered, "the handler")
	if err := r.router.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, done, "the delivery").mustAck(t)
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 1)
}

func routerResult(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	var known []inbox.Entry
	c := &inboxmw.Config{Handler: inboxmw.Handler{OnDuplicate: func(_ *message.Message, e inbox.Entry) error {
		known = append(known, e)
		return nil
	}}}
	r := protected(t, in, c, func(msg *message.Message) ([]*message.Message, error) {
		if err := in.Write(msg.Context(), msg.UUID); err != nil {
			return nil, err
		}
		if msg.UUID == "discarded" {
			return nil, inbox.Discard(msg.Context(), errHandler)
		}
		return nil, inbox.SetResult(msg.Context(), []byte("paid"))
	})
	for range 2 {
		r.deliver(order("result")).mustAck(t)
		r.deliver(order("discarded")).mustAck(t)
	}
	if len(known) != 2 {
		t.Fatalf("got %d duplicates, want 2", len(known))
	}
	if string(known[0].Result) != "paid" || known[0].Discard != "" {
		t.Errorf("got result %q, discard %q, want paid and none", known[0].Result, known[0].Discard)
	}
	if known[1].Discard != errHandler.Error() || known[1].Result != nil {
		t.Errorf("got result %q, discard %q, want none and %q", known[1].Result, known[1].Discard, errHandler)
	}
	in.mustHave(t, 1, "result")
	in.mustHave(t, 0, "discarded")
}

func routerEarlyAck(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	var events recorder
	c := &inboxmw.Config{Observers: []inbox.Observer{&events}}
	write := in.handles("effect")
	r := protected(t, in, c, func(msg *message.Message) ([]*message.Message, error) {
		msg.Ack()
		return write(msg)
	})
	r.deliver(order("1")).mustAck(t)
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 1)
	events.mustBe(t, inbox.Processed)
	if !events.ends[0].EarlyAck {
		t.Error("the observer was not told of the early ack")
	}
}

func routerObservers(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	var first, second recorder
	c := &inboxmw.Config{Observers: []inbox.Observer{&first, &second}}
	fails := true
	write := in.handles("effect")
	r := protected(t, in, c, func(msg *message.Message) ([]*message.Message, error) {
		switch {
		case msg.UUID == "discarded":
			return nil, inbox.Discard(msg.Context(), errHandler)
		case fails:
			return nil, errHandler
		}
		return write(msg)
	})
	r.deliver(order("1")).mustNack(t, errHandler)
	fails = false
	r.deliver(order("1")).mustAck(t)
	r.deliver(order("1")).mustAck(t)
	r.deliver(order("discarded")).mustAck(t)
	for _, e := range []*recorder{&first, &second} {
		e.mustBe(t, inbox.Failed, inbox.Processed, inbox.Duplicate, inbox.Discarded)
		if !errors.Is(e.ends[0].Err, errHandler) || e.ends[1].Err != nil || e.ends[2].Err != nil || e.ends[3].Err != nil {
			t.Errorf("got errors %v, %v, %v, %v", e.ends[0].Err, e.ends[1].Err, e.ends[2].Err, e.ends[3].Err)
		}
		if got, want := e.ends[1].Delivery.Key, (inbox.Key{Consumer: "invoices", MessageID: "1"}); got != want {
			t.Errorf("got key %s, want %s", got, want)
		}
		if e.ends[1].Handler != "invoices" || e.ends[1].Topic != topicIn {
			t.Errorf("got handler %q, topic %q", e.ends[1].Handler, e.ends[1].Topic)
		}
	}
}
