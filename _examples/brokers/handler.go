package main

import (
	"context"
	"encoding/json"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"
)

// order is what the handler gets.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// invoice is what it returns.
type invoice struct {
	OrderID string `json:"order_id"`
	Cents   int64  `json:"cents"`
}

// writeInvoice is the handler. It knows of no broker.
func writeInvoice(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
	var o order
	if err := json.Unmarshal(msg.Payload, &o); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO invoices (order_id, customer, cents) VALUES (?, ?, ?)`, o.ID, o.Customer, o.Cents); err != nil {
		return nil, err
	}
	payload, err := json.Marshal(invoice{OrderID: o.ID, Cents: o.Cents})
	if err != nil {
		return nil, err
	}
	return []*message.Message{message.NewMessage(watermill.NewUUID(), payload)}, nil
}
