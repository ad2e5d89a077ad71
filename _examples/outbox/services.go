package main

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// addShop reserves the goods of an order, and produces what is to be invoiced.
func (p *process) addShop(db *sql.DB) error {
	store := inboxsql.MustNew(db, &inboxsql.Config{Table: shopInbox})
	in := inboxmw.MustNew(store, &inboxmw.Config{Handler: inboxmw.Handler{Produced: inboxmw.Outbox(p.toOutbox)}})
	p.router.AddPlugin(in.Plugin)

	from, err := subscriber(db)
	if err != nil {
		return err
	}
	to, err := publisher(db) // gets nothing: all goes to the outbox
	if err != nil {
		return err
	}
	p.router.AddHandler("reserve-goods", ordersTopic, from, invoicesTopic, to, inboxmw.TxHandler(p.reserve))
	return nil
}

func (p *process) reserve(ctx context.Context, tx *sql.Tx, msg *message.Message) ([]*message.Message, error) {
	var o order
	if err := json.Unmarshal(msg.Payload, &o); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO reservations (order_id, quantity) VALUES ($1, $2)`, o.ID, o.Quantity); err != nil {
		return nil, err
	}
	return []*message.Message{message.NewMessage(watermill.NewUUID(), o.encode())}, nil
}

// toOutbox is openOutbox in a process that may die before the commit.
func (p *process) toOutbox(tx *sql.Tx) (message.Publisher, error) {
	to, err := openOutbox(tx)
	return mortal{to, p}, err
}

// addRelay publishes what stands in the outbox. It has no inbox: if it publishes
// twice, the inbox of billing finds the duplicate.
func (p *process) addRelay(db *sql.DB) error {
	from, err := subscriber(db)
	if err != nil {
		return err
	}
	to, err := publisher(db)
	if err != nil {
		return err
	}
	_, err = forwarder.NewForwarder(from, to, p.router.Logger(), forwarder.Config{
		ForwarderTopic: outboxTopic,
		Router:         p.router,
		Middlewares: []message.HandlerMiddleware{func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				p.comesTo(midWork)
				return next(msg)
			}
		}},
	})
	return err
}

// addBilling writes the invoice of an order.
func (p *process) addBilling(db *sql.DB) error {
	store := inboxsql.MustNew(db, &inboxsql.Config{Table: billingInbox})
	p.router.AddPlugin(inboxmw.MustNew(store, nil).Plugin)

	from, err := subscriber(db)
	if err != nil {
		return err
	}
	p.router.AddConsumerHandler("write-invoice", invoicesTopic, from, inboxmw.TxConsumerHandler(p.invoice))
	return nil
}

func (p *process) invoice(ctx context.Context, tx *sql.Tx, msg *message.Message) error {
	var o order
	if err := json.Unmarshal(msg.Payload, &o); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO invoices (order_id, cents) VALUES ($1, $2)`, o.ID, o.Cents)
	p.comesTo(midWork)
	return err
}
