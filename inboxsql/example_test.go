package inboxsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	_ "github.com/watermill-inbox/inbox/internal/sqlitetest" // stands for your database's driver
)

// A store is made on the database that holds the effects, and is not closed.
func ExampleNew() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a :memory: of its own

	_, err = inboxsql.New(db, &inboxsql.Config{Table: "orders inbox"})
	fmt.Println(err)

	store, err := inboxsql.New(db, &inboxsql.Config{Table: "orders_inbox"})
	if err != nil {
		panic(err)
	}
	fmt.Println("error:", store.CreateTable(context.Background()))
	// Output:
	// inboxsql: Config.Table "orders inbox" is not a name or schema.name of at most 50 ASCII letters, digits and underscores
	// error: <nil>
}

// The middleware calls Once with each message. A program without a router can do
// so itself: the function runs for the first delivery only, and what it writes is
// committed with the key.
func ExampleStore_Once() {
	ctx := context.Background()
	store := inboxsql.MustNew(openDB(), nil)
	order := inbox.Delivery{Key: inbox.Key{Consumer: "invoices", MessageID: "order-1"}}

	for range 2 {
		entry, duplicate, err := store.Once(ctx, order, func(ctx context.Context) (inbox.Effect, error) {
			tx, err := inboxsql.Tx(ctx)
			if err != nil {
				return inbox.Effect{}, err
			}
			fmt.Println("making an invoice")
			_, err = tx.ExecContext(ctx, "INSERT INTO invoices (order_id) VALUES ('order-1')")
			return inbox.Effect{Result: []byte("INV-7")}, err
		})
		fmt.Printf("duplicate: %v, result: %s, error: %v\n", duplicate, entry.Result, err)
	}
	// Output:
	// making an invoice
	// duplicate: false, result: INV-7, error: <nil>
	// duplicate: true, result: INV-7, error: <nil>
}

// The check says before messages flow what is wrong, and how to mend it. The
// router's plugin runs it at start.
func ExampleStore_Check() {
	ctx := context.Background()
	store := inboxsql.MustNew(openDB(), &inboxsql.Config{Deliveries: 4})
	findings, err := store.Check(ctx)
	if err != nil {
		panic(err)
	}
	for _, f := range findings {
		fmt.Printf("fatal: %v\n%s\n%s\n", f.Fatal, f.Problem, f.Remedy)
	}
	// Output:
	// fatal: false
	// the pool has 1 connections for 4 concurrent deliveries: the others wait, and a handler that queries the pool while its transaction is open hangs for ever
	// SetMaxOpenConns(5) or more, and use only the transaction of the context in handlers
}

// The table comes with a migration, as any other does.
func ExampleSchema() {
	ddl, err := inboxsql.Schema(inboxsql.Postgres, "shop.inbox")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(ddl) {
		if strings.HasPrefix(line, "CREATE") {
			fmt.Print(line)
		}
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS "shop"."inbox" (
	// CREATE INDEX IF NOT EXISTS "inbox_received_at" ON "shop"."inbox" (received_at);
}

// A migration turns the table into that of two generations, and keeps its keys.
func ExampleConversion() {
	text, err := inboxsql.Conversion(inboxsql.Postgres, inboxsql.PostgresRotating, "shop.inbox")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ALTER TABLE") || strings.HasPrefix(line, "CREATE") {
			fmt.Print(line)
		}
	}
	// Output:
	// ALTER TABLE "shop"."inbox" RENAME TO "inbox_previous";
	// CREATE TABLE "shop"."inbox_current" (
	// CREATE INDEX "inbox_received_1" ON "shop"."inbox_current" (received_at);
}

// Handlers find the transaction in the context, here as sqlx knows it.
func ExampleTx() {
	type invoice struct {
		OrderID string `db:"order_id"`
	}
	db := openDB()
	deliver(db, func(ctx context.Context) error {
		tx, err := inboxsql.Tx(ctx)
		if err != nil {
			return err
		}
		_, err = tx.NamedExecContext(ctx, "INSERT INTO invoices (order_id) VALUES (:order_id)", invoice{OrderID: "order-1"})
		return err
	})
	var all []invoice
	if err := sqlx.NewDb(db, "sqlite").Select(&all, "SELECT order_id FROM invoices"); err != nil {
		panic(err)
	}
	fmt.Println(all)

	_, err := inboxsql.Tx(context.Background())
	fmt.Println(errors.Is(err, inbox.ErrNoTx))
	// Output:
	// [{order-1}]
	// true
}

// A handler can have the transaction as database/sql knows it.
func ExampleStdTx() {
	db := openDB()
	deliver(db, func(ctx context.Context) error {
		tx, err := inboxsql.StdTx(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO invoices (order_id) VALUES (?)", "order-1")
		return err
	})
	var n int
	if err := db.QueryRowContext(context.Background(), "SELECT count(*) FROM invoices").Scan(&n); err != nil {
		panic(err)
	}
	fmt.Println("invoices:", n)
	// Output: invoices: 1
}

// openDB opens a database with an inbox and a table of invoices.
func openDB() *sql.DB {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file::memory:?_pragma=busy_timeout(1000)")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a :memory: of its own
	if err := inboxsql.MustNew(db, nil).CreateTable(ctx); err != nil {
		panic(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE invoices (order_id TEXT)"); err != nil {
		panic(err)
	}
	return db
}

// deliver does with a message what the middleware does.
func deliver(db *sql.DB, handler func(ctx context.Context) error) {
	order := inbox.Delivery{Key: inbox.Key{Consumer: "invoices", MessageID: "order-1"}}
	_, _, err := inboxsql.MustNew(db, nil).Once(context.Background(), order, func(ctx context.Context) (inbox.Effect, error) {
		return inbox.Effect{}, handler(ctx)
	})
	if err != nil {
		panic(err)
	}
}
