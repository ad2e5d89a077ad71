package testutil_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
	"github.com/watermill-inbox/inbox/testutil"
)

// A handler with the classic bug: one of its two effects goes through the pool. Where
// another connection can write, the report names the table and its rows; here there
// is one connection, which the transaction has.
func ExampleCheckAtomic() {
	db, store := exampleShop()
	defer db.Close() //nolint:errcheck // nothing is lost with it
	handler := inboxmw.TxHandler(func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
		if _, err := db.ExecContext(ctx, `UPDATE stock SET n = n - 1 WHERE item = 'pen'`); err != nil { // not tx
			return nil, err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO invoices VALUES (?, 'pen')`, msg.UUID)
		return nil, err
	})

	test := func(tb testing.TB) {
		testutil.CheckAtomic(tb, testutil.Check{DB: db, Store: store, Handler: handler, Timeout: time.Second}, message.NewMessage("order-1", nil))
	}
	fmt.Println(firstReport(test))
	// Output:
	// only what ran before that was checked: the handler did not return within 1s.
	// Does it wait for the pool while the transaction of its message holds a row, or the only connection?
	// Then it writes outside of the transaction: use that of the message's context (inboxsql.Tx, inbox.Tx).
}

// A key that is made of something else than the message.
func ExampleCheckOnce() {
	db, store := exampleShop()
	defer db.Close() //nolint:errcheck // nothing is lost with it
	handler := inboxmw.TxHandler(func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
		_, err := tx.ExecContext(ctx, `INSERT INTO invoices VALUES (?, 'pen')`, msg.UUID)
		return nil, err
	})

	test := func(tb testing.TB) {
		testutil.CheckOnce(tb, testutil.Check{DB: db, Store: store, Handler: handler, Config: &inboxmw.Config{
			Handler: inboxmw.Handler{Key: counting()},
		}}, message.NewMessage("order-1", nil))
	}
	fmt.Println(firstReport(test)[:len("one message has 6 keys")])
	// Output: one message has 6 keys
}

func ExampleRecorder() {
	var mails testutil.Recorder
	_ = mails.Publish("mails", message.NewMessage("1", []byte("Dear customer")))
	for _, p := range mails.Published() {
		fmt.Println(p.Topic, p.Message.UUID)
	}
	// Output: mails 1
}

// exampleShop is a database with an inbox and two tables.
func exampleShop() (*sql.DB, *inboxsql.Store) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	store := inboxsql.MustNew(db, nil)
	if err := store.CreateTable(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, statement := range []string{
		`CREATE TABLE stock (item TEXT PRIMARY KEY, n INTEGER)`,
		`INSERT INTO stock VALUES ('pen', 5)`,
		`CREATE TABLE invoices (order_id TEXT, item TEXT)`,
	} {
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			log.Fatal(err)
		}
	}
	return db, store
}

// firstReport stands for the output of go test.
func firstReport(test func(tb testing.TB)) string {
	r := &recorder{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(r)
	}()
	<-ended
	if len(r.reports) == 0 {
		return "nothing"
	}
	return r.reports[0]
}
