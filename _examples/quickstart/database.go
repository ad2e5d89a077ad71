package main

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/watermill-inbox/inbox/inboxsql"
)

// tables has no constraint that would hide an invoice that is written twice.
const tables = `
CREATE TABLE invoices (
    number   INTEGER PRIMARY KEY,
    order_id TEXT NOT NULL,
    customer TEXT NOT NULL,
    country  TEXT NOT NULL,
    currency TEXT NOT NULL,
    cents    INTEGER NOT NULL
);
CREATE TABLE processed (message_id TEXT PRIMARY KEY); -- of the inbox written by hand`

func openDatabase(path string) (*sqlx.DB, error) {
	db, err := sqlx.Open("sqlite", path+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return db, nil
}

// createTables stands for the migration that a service has.
func createTables(ctx context.Context, path string) (err error) {
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return err
	}
	return inboxsql.MustNew(db, nil).CreateTable(ctx)
}

// countInvoices returns how many invoices each order has.
func countInvoices(ctx context.Context, path string) (counts map[string]int, err error) {
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `SELECT order_id, count(*) FROM invoices GROUP BY order_id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	counts = map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		counts[id] = n
	}
	return counts, rows.Err()
}
