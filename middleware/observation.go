package inboxmw

import (
	"context"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// observation is a delivery as its observers see it.
type observation struct {
	in      *Inbox
	handler string
	topic   string
	started time.Time
	ctx     context.Context //nolint:containedctx // what the observers made of it, until the end
	each    []context.Context
}

func (in *Inbox) observe(ctx context.Context, d inbox.Delivery, handler string) observation {
	o := observation{
		in:      in,
		handler: handler,
		topic:   message.SubscribeTopicFromCtx(ctx),
		started: time.Now(),
		ctx:     ctx,
	}
	for _, observer := range in.observers {
		o.ctx = observer.DeliveryStart(o.ctx, d) //nolint:fatcontext // one link for each observer
		o.each = append(o.each, o.ctx)
	}
	return o
}

// end tells the observers, the last one first, as each may have built on the
// context of the one before.
func (o observation) end(e inbox.Event) {
	e.Handler, e.Topic = o.handler, o.topic
	for i, ctx := range slices.Backward(o.each) {
		o.in.observers[i].DeliveryEnd(ctx, e)
	}
}
