package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/watermill-inbox/inbox/inboxsql"
)

// invoices has no constraint that would hide one that is written twice.
const table = `CREATE TABLE invoices (order_id TEXT NOT NULL, customer TEXT NOT NULL, cents INTEGER NOT NULL)`

// makeDatabase makes the database of the service, in a folder of its own.
func makeDatabase(ctx context.Context) (db *sqlx.DB, dir string, err error) {
	dir, err = os.MkdirTemp("", "inbox-brokers-")
	if err != nil {
		return nil, "", err
	}
	db, err = sqlx.Open("sqlite", filepath.Join(dir, "invoices.db")+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	db.SetMaxOpenConns(4)
	_, err = db.ExecContext(ctx, table)
	if err = errors.Join(err, inboxsql.MustNew(db, nil).CreateTable(ctx)); err != nil {
		return nil, "", errors.Join(err, db.Close(), os.RemoveAll(dir))
	}
	return db, dir, nil
}

// counts is what a run left: effects in the database, outputs at their topic.
type counts struct {
	deliveries       int64
	effects, outputs tally
}

// tally counts rows or message ids by the order that each belongs to.
type tally struct {
	all    int
	orders int // that have at least one
}

func (r *run) count(ctx context.Context) (counts, error) {
	c := counts{deliveries: r.deliveries.Load()}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ids := range r.outputs {
		c.outputs.all += len(ids)
		c.outputs.orders++
	}
	err := r.db.QueryRowContext(ctx, `SELECT count(*), count(DISTINCT order_id) FROM invoices`).Scan(&c.effects.all, &c.effects.orders)
	return c, err
}

func (t tally) doubled() int { return t.all - t.orders }
func (t tally) lost() int    { return orders - t.orders }

func (c counts) String() string {
	return fmt.Sprintf("%d messages, %d deliveries, %d effects, %d outputs, %d doubled, %d lost", orders, c.deliveries, c.effects.all, c.outputs.all,
		c.effects.doubled()+c.outputs.doubled(), c.effects.lost()+c.outputs.lost())
}

func (c counts) check() error {
	if once := (tally{all: orders, orders: orders}); c.effects != once || c.outputs != once {
		return errors.New(c.String())
	}
	return nil
}

// happened says what went wrong on the way.
func (r *run) happened() string {
	r.trouble.mu.Lock()
	defer r.trouble.mu.Unlock()
	deploys := fmt.Sprintf("%d members closed in mid-work and started anew", r.deploys.Load())
	if r.broker.forgetful {
		deploys = "no deploy, as this broker forgets what is not acked"
	}
	return fmt.Sprintf("the handler failed %d times, the publisher %d times; %s", r.trouble.handlers, r.trouble.publish, deploys)
}
