package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	_ "github.com/watermill-inbox/inbox/internal/sqlitetest" // stands for your database's driver
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// A handler finds the transaction of its delivery in the context of the message,
// by what it wants to use it as.
func ExampleTx() {
	db := openShop()
	handler := protect(db, inboxmw.Handler{}, func(msg *message.Message) ([]*message.Message, error) {
		tx, err := inbox.Tx[*sqlx.Tx](msg.Context())
		if err != nil {
			return nil, err
		}
		_, err = tx.ExecContext(msg.Context(), "INSERT INTO invoices (order_id) VALUES (?)", msg.UUID)
		return nil, err
	})
	for range 2 {
		_, err := handler(message.NewMessage("order-1", nil))
		fmt.Println("error:", err, "invoices:", invoices(db))
	}

	_, err := inbox.Tx[*sqlx.Tx](context.Background())
	fmt.Println("elsewhere:", errors.Is(err, inbox.ErrNoTx))
	// Output:
	// error: <nil> invoices: 1
	// error: <nil> invoices: 1
	// elsewhere: true
}

// Code that needs one method of the transaction can ask for an interface, and
// panic if it is called outside a protected handler: the delivery is then rolled
// back.
func ExampleMustTx() {
	type execer interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
	addInvoice := func(ctx context.Context, orderID string) error {
		_, err := inbox.MustTx[execer](ctx).ExecContext(ctx, "INSERT INTO invoices (order_id) VALUES (?)", orderID)
		return err
	}

	db := openShop()
	handler := protect(db, inboxmw.Handler{}, func(msg *message.Message) ([]*message.Message, error) {
		return nil, addInvoice(msg.Context(), msg.UUID)
	})
	_, err := handler(message.NewMessage("order-1", nil))
	fmt.Println("error:", err, "invoices:", invoices(db))
	// Output: error: <nil> invoices: 1
}

// A store, or a Bind hook that wraps the transaction for an ORM, deposits what
// handlers can use.
func ExampleContextWithTx() {
	type session struct{ tx *sqlx.Tx }
	bind := func(ctx context.Context) (context.Context, error) {
		tx, err := inbox.Tx[*sqlx.Tx](ctx)
		if err != nil {
			return nil, err
		}
		return inbox.ContextWithTx(ctx, &session{tx}), nil
	}
	handler := protect(openShop(), inboxmw.Handler{Bind: bind}, func(msg *message.Message) ([]*message.Message, error) {
		s, err := inbox.Tx[*session](msg.Context())
		fmt.Println("session:", s != nil && s.tx != nil)
		return nil, err
	})
	_, err := handler(message.NewMessage("order-1", nil))
	fmt.Println("error:", err)
	// Output:
	// session: true
	// error: <nil>
}

// The answer of the first delivery is there for whoever meets the duplicate.
func ExampleSetResult() {
	settings := inboxmw.Handler{OnDuplicate: func(_ *message.Message, e inbox.Entry) error {
		fmt.Printf("duplicate; the invoice was %s\n", e.Result)
		return nil
	}}
	handler := protect(openShop(), settings, func(msg *message.Message) ([]*message.Message, error) {
		fmt.Println("making an invoice for", msg.UUID)
		return nil, inbox.SetResult(msg.Context(), []byte("INV-7"))
	})
	for range 2 {
		if _, err := handler(message.NewMessage("order-1", nil)); err != nil {
			panic(err)
		}
	}
	// Output:
	// making an invoice for order-1
	// duplicate; the invoice was INV-7
}

// An order that turns out to be void is never to be processed: what the handler
// wrote is undone, and the message is acked.
func ExampleDiscard() {
	db := openShop()
	settings := inboxmw.Handler{OnDuplicate: func(_ *message.Message, e inbox.Entry) error {
		fmt.Println("duplicate; discarded as", e.Discard)
		return nil
	}}
	handler := protect(db, settings, func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context()
		if _, err := inbox.MustTx[*sql.Tx](ctx).ExecContext(ctx, "INSERT INTO invoices (order_id) VALUES (?)", msg.UUID); err != nil {
			return nil, err
		}
		return nil, inbox.Discard(ctx, errors.New("order is void"))
	})
	for range 2 {
		_, err := handler(message.NewMessage("order-1", nil))
		fmt.Println("error:", err, "invoices:", invoices(db))
	}
	// Output:
	// error: <nil> invoices: 0
	// duplicate; discarded as order is void
	// error: <nil> invoices: 0
}

// malformed says of itself that another delivery does not help.
type malformed struct{ field string }

func (e malformed) Error() string { return "no " + e.field }

func (e malformed) Permanent() bool { return true }

func ExamplePermanent() {
	err := fmt.Errorf("decode order: %w", malformed{field: "currency"})
	fmt.Println(err, inbox.Permanent(err))
	fmt.Println(inbox.ErrBusy, inbox.Permanent(inbox.ErrBusy))
	// Output:
	// decode order: no currency true
	// inbox: database is busy false
}

func ExampleKey_Validate() {
	err := inbox.Key{Consumer: "invoices"}.Validate()
	fmt.Println(errors.Is(err, inbox.ErrInvalidKey), inbox.Permanent(err))
	fmt.Println(inbox.Key{Consumer: "invoices", MessageID: "order-1"}.Validate())
	// Output:
	// true true
	// <nil>
}

func ExampleKey_String() {
	fmt.Println(inbox.Key{Consumer: "invoices", MessageID: "order-1"})
	fmt.Println(inbox.Key{Consumer: "invoices", Source: "shop", MessageID: "order 1"})
	// Output:
	// invoices/order-1
	// invoices/shop/"order 1"
}

// protect puts the inbox around a handler, as a router with the middleware does.
func protect(db *sql.DB, settings inboxmw.Handler, h message.HandlerFunc) message.HandlerFunc {
	settings.Consumer = "invoices"
	return inboxmw.MustNew(inboxsql.MustNew(db, nil), nil).With(settings)(h)
}

func openShop() *sql.DB {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
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

func invoices(db *sql.DB) (n int) {
	if err := db.QueryRowContext(context.Background(), "SELECT count(*) FROM invoices").Scan(&n); err != nil {
		panic(err)
	}
	return n
}
