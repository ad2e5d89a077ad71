package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// waitUntilSettled returns when every message of each topic is acked. A message
// that makes another one is acked after that one is committed.
func waitUntilSettled(ctx context.Context, db *sql.DB) error {
	ticker := time.NewTicker(5 * poll)
	defer ticker.Stop()
	for {
		var left int
		err := db.QueryRowContext(ctx, `SELECT
			(SELECT count(*) FROM watermill_orders WHERE NOT acked) +
			(SELECT count(*) FROM watermill_outbox WHERE NOT acked) +
			(SELECT count(*) FROM watermill_invoices WHERE NOT acked)`).Scan(&left)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case left == 0:
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%d messages are not settled: %w", left, context.Cause(ctx))
		}
	}
}

// counts is what a run left in the database.
type counts struct {
	sent, relayed          int
	reservations, invoices effect
	killed                 int
}

type effect struct {
	rows   int
	orders int // that have at least one
}

func count(ctx context.Context, db *sql.DB) (counts, error) {
	var c counts
	err := db.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM watermill_orders), (SELECT count(*) FROM watermill_invoices),
		(SELECT count(*) FROM reservations), (SELECT count(DISTINCT order_id) FROM reservations),
		(SELECT count(*) FROM invoices), (SELECT count(DISTINCT order_id) FROM invoices)`).Scan(
		&c.sent, &c.relayed, &c.reservations.rows, &c.reservations.orders, &c.invoices.rows, &c.invoices.orders)
	return c, err
}

func (e effect) doubled() int { return e.rows - e.orders }
func (e effect) lost() int    { return orders - e.orders }

func (c counts) String() string {
	return fmt.Sprintf("%d orders sent %d times, %d reservations, outbox relayed %d times, %d invoices, %d processes killed, %d doubled, %d lost",
		orders, c.sent, c.reservations.rows, c.relayed, c.invoices.rows, c.killed,
		c.reservations.doubled()+c.invoices.doubled(), c.reservations.lost()+c.invoices.lost())
}

func (c counts) check() error {
	once := effect{rows: orders, orders: orders}
	switch {
	case c.reservations != once || c.invoices != once:
		return errors.New(c.String())
	case c.sent <= orders || c.relayed <= orders || c.killed != len(services)*len(crashes()):
		return fmt.Errorf("too little went wrong, so this shows nothing: %s", c)
	}
	return nil
}
