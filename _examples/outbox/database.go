package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/watermill-inbox/inbox/inboxsql"
)

// effects have no constraint that would hide one that happens twice.
var effects = []string{ //nolint:gochecknoglobals // constant
	`CREATE TABLE reservations (order_id TEXT NOT NULL, quantity INT NOT NULL)`,
	`CREATE TABLE invoices (order_id TEXT NOT NULL, cents BIGINT NOT NULL)`,
}

// The tables of the two inboxes. Services in databases of their own need no names.
const (
	shopInbox    = "shop_inbox"
	billingInbox = "billing_inbox"
)

// open opens the database, with schema as the place of all tables.
func open(dsn, schema string) (*sql.DB, *pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	if schema != "" {
		cfg.RuntimeParams["search_path"] = schema
	}
	return stdlib.OpenDB(*cfg), cfg, nil
}

// makeSchema stands for the migrations that services have.
func makeSchema(ctx context.Context, dsn string) (db *sql.DB, schema string, err error) {
	schema = fmt.Sprintf("outbox_example_%08x", rand.Uint32()) //nolint:gosec // a name, not a secret
	db, cfg, err := open(dsn, schema)
	if err != nil {
		return nil, "", err
	}
	reach, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := db.PingContext(reach); err != nil {
		return nil, "", errors.Join(fmt.Errorf("PostgreSQL cannot be reached at %s:%d, database %q: start it with docker compose up --detach --wait postgres, "+
			"or say with -dsn or %s where yours is: %w", cfg.Host, cfg.Port, cfg.Database, dsnEnv, err), db.Close())
	}
	if err := makeTables(ctx, db, schema); err != nil {
		return nil, "", errors.Join(err, dropSchema(ctx, db, schema))
	}
	return db, schema, nil
}

func makeTables(ctx context.Context, db *sql.DB, schema string) error {
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		return err
	}
	for _, table := range effects {
		if _, err := db.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	for _, table := range []string{shopInbox, billingInbox} {
		if err := inboxsql.MustNew(db, &inboxsql.Config{Table: table}).CreateTable(ctx); err != nil {
			return err
		}
	}
	for _, topic := range []string{ordersTopic, outboxTopic, invoicesTopic} {
		if err := makeTopic(db, topic); err != nil {
			return err
		}
	}
	return nil
}

// dropSchema leaves nothing behind, also when ctx has ended.
func dropSchema(ctx context.Context, db *sql.DB, schema string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err := db.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+schema+" CASCADE") //nolint:gosec // our own name
	return errors.Join(err, db.Close())
}

// sendOrders sends all orders, every tenth one twice, as its sender saw no answer.
func sendOrders(db *sql.DB) error {
	to, err := publisher(db)
	if err != nil {
		return err
	}
	for n := range orders {
		o := order{ID: fmt.Sprintf("S-%d", 100001+n), Quantity: 1 + n%3, Cents: int64(990 * (1 + n%7))}
		for range 1 + (n%10)/9 {
			if err := to.Publish(ordersTopic, message.NewMessage("order-"+o.ID, o.encode())); err != nil {
				return err
			}
		}
	}
	return nil
}
