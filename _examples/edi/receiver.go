package main

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"
)

// What the receiver says of a document, beside the fields of its key.
const (
	partnerField = "partner"
	fileField    = "file"
)

// receive is the AS2 receiver: it logs the receipt of a document and publishes
// it. It keeps no memory, so that a document that the partner sends again after
// a timeout is a new message, with a new UUID. What it cannot read it refuses,
// as an HTTP status would.
func receive(ctx context.Context, db *sqlx.DB, publisher message.Publisher, d document) error {
	ack, err := readAcknowledgement(d.content)
	if err != nil {
		return fmt.Errorf("receive %s from %s: %w", d.file, d.partner, err)
	}
	msg := message.NewMessage(watermill.NewUUID(), d.content)
	msg.Metadata.Set(partnerField, d.partner)
	msg.Metadata.Set(fileField, d.file)
	referenceField, hashField := ack.kind.keyFields()
	msg.Metadata.Set(referenceField, ack.reference)
	msg.Metadata.Set(hashField, ack.dispositionHash())

	_, err = db.ExecContext(ctx, `INSERT INTO receipts (transmission, partner, file) VALUES (?, ?, ?)`, msg.UUID, d.partner, d.file)
	if err != nil {
		return fmt.Errorf("receive %s from %s: %w", d.file, d.partner, err)
	}
	return publisher.Publish(topic, msg)
}
