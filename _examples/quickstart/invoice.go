package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"
)

// email is what the handler produces.
type email struct {
	OrderID string `json:"order_id"`
	To      string `json:"to"`
	Subject string `json:"subject"`
}

// writeInvoice is the handler: one invoice for an order, and an email to the
// customer. It knows nothing of duplicates. db is the transaction of the delivery
// or, unprotected, the pool.
func writeInvoice(ctx context.Context, db sqlx.ExtContext, msg *message.Message) ([]*message.Message, error) {
	var o order
	if err := json.Unmarshal(msg.Payload, &o); err != nil {
		return nil, fmt.Errorf("read order: %w", err)
	}
	_, err := db.ExecContext(ctx, `INSERT INTO invoices (order_id, customer, country, currency, cents) VALUES (?, ?, ?, ?, ?)`,
		o.ID, o.Customer.Number, o.Customer.Country, o.Currency, o.total())
	if err != nil {
		return nil, fmt.Errorf("write invoice of order %s: %w", o.ID, err)
	}
	payload, err := json.Marshal(email{OrderID: o.ID, To: o.Customer.Email, Subject: "Your invoice for order " + o.ID})
	if err != nil {
		return nil, err
	}
	return []*message.Message{message.NewMessage(watermill.NewUUID(), payload)}, nil
}

// handler has the form of [writeInvoice].
type handler = func(ctx context.Context, db sqlx.ExtContext, msg *message.Message) ([]*message.Message, error)

// unprotected is how handlers are usually written: straight to the pool.
func unprotected(db *sqlx.DB, h handler) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		return h(msg.Context(), db, msg)
	}
}

// byHand is the inbox that people write themselves. It doubles nothing. But the
// router publishes after the commit: if that fails, the next delivery finds the id
// in the table and returns no email.
func byHand(db *sqlx.DB, h handler) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context()
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
		result, err := tx.ExecContext(ctx, `INSERT INTO processed (message_id) VALUES (?) ON CONFLICT DO NOTHING`, msg.UUID)
		if err != nil {
			return nil, err
		}
		if n, countErr := result.RowsAffected(); countErr != nil || n == 0 {
			return nil, countErr
		}
		produced, err := h(ctx, tx, msg)
		if err != nil {
			return nil, err
		}
		return produced, tx.Commit()
	}
}
