package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// member is a router with the handler, as a process of the service would have it.
type member struct {
	close   func() error
	closing chan struct{}
	hold    atomic.Bool   // the next delivery that succeeds
	held    chan struct{} // is closed when there is one
}

// startMember starts a member, which runs until its close.
func (r *run) startMember(ctx context.Context) (*member, error) {
	subscriber, err := r.broker.subscriber(r.orders)
	if err != nil {
		return nil, err
	}
	publisher, err := r.broker.publisher()
	if err != nil {
		return nil, errors.Join(err, subscriber.Close())
	}
	router, err := message.NewRouter(message.RouterConfig{}, r.logger)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	m := &member{closing: make(chan struct{}), held: make(chan struct{})}
	m.close = sync.OnceValue(func() error {
		close(m.closing)
		return errors.Join(router.Close(), <-ended)
	})
	router.AddMiddleware(r.countDeliveries, m.holdAfterCommit)
	router.AddPlugin(inboxmw.MustNew(inboxsql.MustNew(r.db, nil), nil).Plugin) // the line
	router.AddHandler("write-invoice", r.orders, subscriber, r.invoices, r.trouble.publishing(publisher),
		inboxmw.TxHandler(r.trouble.handling(writeInvoice)))

	go func() { ended <- router.Run(context.WithoutCancel(ctx)) }()
	select {
	case <-router.Running():
		return m, nil
	case err := <-ended:
		return nil, fmt.Errorf("the router did not start: %w", err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *run) countDeliveries(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		r.deliveries.Add(1)
		r.last.Store(time.Now().UnixNano())
		return next(msg)
	}
}

// holdAfterCommit is outside of the inbox: the transaction is committed, and the
// router has not published what the handler produced. There it holds a delivery
// until the member closes, and ends it: a router closes its publisher without
// waiting for deliveries, so a deploy does that to those it finds there.
func (m *member) holdAfterCommit(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		produced, err := next(msg)
		if err == nil && m.hold.CompareAndSwap(true, false) {
			close(m.held)
			<-m.closing
			return nil, errClosed
		}
		return produced, err
	}
}

// closeInMidWork closes the member when it holds a delivery.
func (m *member) closeInMidWork(ctx context.Context) error {
	m.hold.Store(true)
	select {
	case <-m.held:
		return m.close()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
