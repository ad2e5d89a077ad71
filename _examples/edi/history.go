package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// tables has the orders that were sent, and no constraint that would hide a
// transition that is written twice.
//
//go:embed tables.sql
var tables string

func createTables(ctx context.Context, db *sqlx.DB) error {
	_, err := db.ExecContext(ctx, tables)
	return err
}

// recordTransition is the handler: one row in the history of the order that the
// document acknowledges. It knows nothing of duplicates.
func recordTransition(ctx context.Context, tx *sqlx.Tx, msg *message.Message) error {
	ack, err := readAcknowledgement(msg.Payload)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, `
INSERT INTO order_history (partner, order_no, kind, transition, disposition, issued_at, file)
SELECT partner, order_no, ?, ?, ?, ?, ? FROM sent_orders
WHERE partner = ? AND ? IN (as2_message_id, control_reference)`,
		ack.kind, ack.transition, ack.disposition, ack.issued.Format("2006-01-02 15:04"), msg.Metadata.Get(fileField),
		msg.Metadata.Get(partnerField), ack.reference)
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if rows == 0 {
		return inbox.Discard(ctx, errors.New("it acknowledges nothing that was sent to this partner"))
	}
	return inbox.SetResult(ctx, []byte(ack.disposition))
}

// readHistory lists the transitions of each order by the time at which the
// partner issued them, whenever they arrived.
func readHistory(ctx context.Context, db *sqlx.DB) (string, error) {
	rows, err := db.QueryContext(ctx, `
SELECT partner, order_no, issued_at, transition, kind, disposition FROM order_history
ORDER BY partner, order_no, issued_at, id`)
	if err != nil {
		return "", err
	}
	defer rows.Close() //nolint:errcheck // read only
	var history strings.Builder
	const line = "%-10s  %-10s  %-16s  %-21s  %-6s  %s\n"
	fmt.Fprintf(&history, line, "PARTNER", "ORDER", "ISSUED (UTC)", "TRANSITION", "BY", "DISPOSITION")
	for rows.Next() {
		var partner, order, issued, transition, kind, disposition string
		if err := rows.Scan(&partner, &order, &issued, &transition, &kind, &disposition); err != nil {
			return "", err
		}
		fmt.Fprintf(&history, line, partner, order, issued, transition, kind, disposition)
	}
	return history.String(), rows.Err()
}
