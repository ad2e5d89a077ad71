package inboxmw

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

// wrapped is a handler with the inbox around it.
type wrapped struct {
	in   *Inbox
	next message.HandlerFunc
	own  *Handler // settings from With; nil: by the handler's name

	byName sync.Map // name in the router to *protected; one entry within a router
	warned atomic.Bool
}

// protected is a handler whose name, and so whose settings are known.
type protected struct {
	Handler
	name string
	next message.HandlerFunc // with the middlewares of Inside around it
}

// owner identifies a delivery in its state: a context can be carried to another
// message.
type owner struct {
	msg *message.Message
	in  *Inbox
	key inbox.Key
	own *Handler
}

// passing marks a context of a message that a With lets pass.
type passing struct{}

func (w *wrapped) handle(msg *message.Message) ([]*message.Message, error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			panic(p) // not nacked: an outer middleware may still decide
		}
		// runtime.Goexit, as testing's FailNow: nobody above will settle the message.
		msg.Nack()
	}()
	out, err := w.deliver(msg)
	returned = true
	return out, err
}

func (w *wrapped) deliver(msg *message.Message) ([]*message.Message, error) {
	if w.own == nil && w.aside(msg) {
		return w.next(msg)
	}
	p := w.resolve(message.HandlerNameFromCtx(msg.Context()))
	if p.Unprotected {
		return w.pass(msg, p, inbox.Unprotected)
	}
	if p.Skip != nil && p.Skip(msg) {
		return w.pass(msg, p, inbox.Skipped)
	}
	return (&run{in: w.in, w: w, p: p, msg: msg}).handle()
}

func (w *wrapped) resolve(name string) *protected {
	if p, ok := w.byName.Load(name); ok {
		return p.(*protected) //nolint:forcetypeassert,errcheck // nothing else is stored
	}
	p := &protected{name: name, next: w.next}
	if w.own != nil {
		p.Handler = *w.own
		p.Consumer = cmp.Or(p.Consumer, name)
	} else {
		p.Handler = w.in.settings(name)
	}
	for _, m := range slices.Backward(p.Inside) {
		p.next = m(p.next)
	}
	kept, known := w.byName.LoadOrStore(name, p)
	if !known && p.Unprotected && relays[name] {
		w.in.log().Info("Inbox: handler is left unprotected, as it passes messages on that keep their UUID", watermill.LogFields{"handler_name": name})
	}
	return kept.(*protected) //nolint:forcetypeassert,errcheck // nothing else is stored
}

// pass runs the handler without the inbox. A transaction that another message's
// context has brought along is hidden from it.
func (w *wrapped) pass(msg *message.Message, p *protected, outcome inbox.Outcome) (out []*message.Message, err error) {
	before := msg.Context()
	defer msg.SetContext(before)
	ctx := before
	if o := ownerOf(ctx); len(delivery.Handles(ctx)) > 0 && (o == nil || o.msg != msg) {
		ctx = delivery.NewContext(ctx, nil)
	}
	ctx = context.WithValue(ctx, passing{}, owner{in: w.in, msg: msg})
	o := w.in.observe(ctx, inbox.Delivery{}, p.name)
	defer func() {
		o.end(inbox.Event{Outcome: outcome, Produced: len(out), Duration: time.Since(o.started)})
	}()
	msg.SetContext(o.ctx)
	return p.next(msg)
}

// aside reports whether a wrapping of the same inbox further out has taken msg, or
// let it pass.
func (w *wrapped) aside(msg *message.Message) bool {
	ctx := msg.Context()
	if o, ok := ctx.Value(passing{}).(owner); ok && o.in == w.in && o.msg == msg {
		return true
	}
	o := ownerOf(ctx)
	if o == nil || o.msg != msg || o.in != w.in {
		return false
	}
	if o.own == nil && !w.warned.Swap(true) {
		w.in.log().Info("Inbox stands twice around one handler; the inner one does nothing", watermill.LogFields{"handler_name": message.HandlerNameFromCtx(ctx)})
	}
	return true
}
