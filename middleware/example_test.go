package inboxmw_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox/inboxsql"
	_ "github.com/watermill-inbox/inbox/internal/sqlitetest" // stands for your database's driver
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// A producer sends one order twice, as producers that retry do. There is one
// invoice in the database, and the mail goes out for each delivery, with the same
// UUID: the consumer of mails knows it by that.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a :memory: of its own
	if _, err = db.ExecContext(ctx, "CREATE TABLE invoices (order_id TEXT, lines TEXT)"); err != nil {
		panic(err)
	}
	store := inboxsql.MustNew(db, nil)
	if err = store.CreateTable(ctx); err != nil {
		panic(err)
	}

	broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
	mails, err := broker.Subscribe(ctx, "mails")
	if err != nil {
		panic(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		panic(err)
	}
	router.AddMiddleware(inboxmw.MustNew(store, nil).Middleware) // the line
	router.AddHandler("invoices", "orders", broker, "mails", broker, inboxmw.TxHandler(makeInvoice))
	go func() {
		if err := router.Run(ctx); err != nil {
			panic(err)
		}
	}()
	<-router.Running()

	for range 2 {
		if err := broker.Publish("orders", message.NewMessage("order-1001", []byte("3 books"))); err != nil {
			panic(err)
		}
	}
	for range 2 {
		mail := <-mails
		fmt.Printf("%s: %s\n", mail.UUID, mail.Payload)
		mail.Ack()
	}
	if err := router.Close(); err != nil {
		panic(err)
	}
	var invoices int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM invoices").Scan(&invoices); err != nil {
		panic(err)
	}
	fmt.Println("invoices:", invoices)
	if err := db.Close(); err != nil { // the inbox never does
		panic(err)
	}
	// Output:
	// mail-order-1001: your invoice for 3 books
	// mail-order-1001: your invoice for 3 books
	// invoices: 1
}

// makeInvoice writes an invoice for an order and sends a mail about it.
func makeInvoice(ctx context.Context, tx *sqlx.Tx, order *message.Message) ([]*message.Message, error) {
	if _, err := tx.ExecContext(ctx, "INSERT INTO invoices (order_id, lines) VALUES (?, ?)", order.UUID, string(order.Payload)); err != nil {
		return nil, err
	}
	mail := message.NewMessage("mail-"+order.UUID, append([]byte("your invoice for "), order.Payload...))
	return []*message.Message{mail}, nil
}
