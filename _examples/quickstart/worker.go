package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
	"github.com/watermill-inbox/inbox/retention"
)

const (
	ordersTopic = "orders"
	emailsTopic = "emails"
)

// work is the worker: a router that takes its orders from stdin and tells the
// broker on stdout what became of them. It returns when stdin ends and the router
// has closed.
func work(ctx context.Context, w way, database string, t *trouble) error {
	logger := watermill.NewSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	db, err := openDatabase(database)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // all that counts is committed

	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return err
	}
	toBroker := &wire{to: os.Stdout}
	orders := gochannel.NewGoChannel(gochannel.Config{}, logger)
	emails := &emailPublisher{to: toBroker, trouble: t}
	router.AddSubscriberDecorators(message.MessageTransformSubscriberDecorator(toBroker.follow))

	handle := t.in(writeInvoice)
	switch w {
	case withoutLine:
		router.AddHandler("invoices", ordersTopic, orders, emailsTopic, emails, unprotected(db, handle)) //nolint:contextcheck // the message has one
	case withLine:
		router.AddMiddleware(inboxmw.MustNew(inboxsql.MustNew(db, nil), nil).Middleware)
		router.AddPlugin(retention.MustNew(inboxsql.MustNew(db, nil), nil).Plugin) // removes keys that are older than a week
		router.AddHandler("invoices", ordersTopic, orders, emailsTopic, emails, inboxmw.TxHandler(handle))
	case writtenByHand:
		router.AddHandler("invoices", ordersTopic, orders, emailsTopic, emails, byHand(db, handle)) //nolint:contextcheck // the message has one
	default:
		return fmt.Errorf("unknown way %q", w)
	}

	stopped := make(chan error, 1)
	go func() { stopped <- router.Run(ctx) }()
	select {
	case <-router.Running():
	case err := <-stopped:
		return fmt.Errorf("the router did not start: %w", err)
	}
	if err := produce(os.Stdin, orders, t); err != nil {
		return err
	}
	return errors.Join(router.Close(), <-stopped)
}

// produce publishes the orders, some of them twice, as a producer does that got
// no confirmation.
func produce(stdin io.Reader, orders message.Publisher, t *trouble) error {
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return err
		}
		msg := message.NewMessage(l.ID, message.Payload(l.Payload))
		if err := orders.Publish(ordersTopic, msg); err != nil {
			return err
		}
		if !t.strikes(8) {
			continue
		}
		if err := orders.Publish(ordersTopic, msg); err != nil {
			return err
		}
	}
	return lines.Err()
}

// follow tells the broker of a delivery and, once the router has acked it, of
// that. A nacked message is delivered again by the Pub/Sub.
func (w *wire) follow(msg *message.Message) {
	_ = w.send(line{Kind: delivered, ID: msg.UUID}) // without a broker the worker is about to end
	go func() {
		select {
		case <-msg.Acked():
			_ = w.send(line{Kind: acked, ID: msg.UUID})
		case <-msg.Nacked():
		}
	}()
}

// emailPublisher sends emails to the broker, which keeps them for whoever is
// downstream.
type emailPublisher struct {
	to      *wire
	trouble *trouble
	closed  atomic.Bool
}

var errClosed = errors.New("the publisher is closed")

func (p *emailPublisher) Publish(_ string, messages ...*message.Message) error {
	for _, m := range messages {
		if p.closed.Load() {
			return errClosed
		}
		err := p.trouble.publishing(func() error {
			return p.to.send(line{Kind: published, ID: m.UUID, Payload: json.RawMessage(m.Payload)})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *emailPublisher) Close() error {
	p.closed.Store(true)
	return nil
}
