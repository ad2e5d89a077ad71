package inboxmw_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// As a plugin the inbox checks the database before the router subscribes, and
// stands innermost, whatever is added after it.
func ExampleInbox_Plugin() {
	e := newExample()
	e.router.AddPlugin(inboxmw.MustNew(e.store, nil).Plugin)
	e.router.AddMiddleware(retry(3)) // stands for Watermill's Retry
	e.router.AddHandler("invoices", "orders", e.broker, "mails", printer{}, inboxmw.TxHandler(makeInvoice))
	e.deliver(order("order-1001"), order("order-1001"))
	e.show("invoices")
	// Output:
	// published to mails: mail-order-1001
	// published to mails: mail-order-1001
	// invoices: 1
}

// One handler knows its messages by a metadata field, as its producer makes a new
// UUID for each attempt to send.
func ExampleInbox_With() {
	e := newExample()
	in := inboxmw.MustNew(e.store, nil)
	e.router.AddHandler("invoices", "orders", e.broker, "mails", nowhere{}, inboxmw.TxHandler(makeInvoice)).
		AddMiddleware(in.With(inboxmw.Handler{Key: inboxmw.Metadata("order_id")}))
	first, second := order(watermill.NewUUID()), order(watermill.NewUUID())
	first.Metadata.Set("order_id", "1001")
	second.Metadata.Set("order_id", "1001")
	e.deliver(first, second)
	e.show("invoices")
	// Output:
	// invoices: 1
}

// One handler was renamed in the router and keeps its keys; another one has no
// effects in the database.
func ExampleConfig() {
	e := newExample()
	in := inboxmw.MustNew(e.store, &inboxmw.Config{
		Handlers: map[string]inboxmw.Handler{
			"make_invoices": {Consumer: "invoices"},
			"metrics":       {Unprotected: true},
		},
	})
	e.router.AddPlugin(in.Plugin)
	e.router.AddHandler("make_invoices", "orders", e.broker, "mails", printer{}, inboxmw.TxHandler(makeInvoice))
	e.router.AddConsumerHandler("metrics", "clicks", e.broker, func(*message.Message) error { return nil })
	e.deliver(order("order-1001"), order("order-1001"))

	var consumer string
	if err := e.db.QueryRowContext(context.Background(), "SELECT consumer FROM inbox_messages").Scan(&consumer); err != nil {
		panic(err)
	}
	fmt.Println("consumer:", consumer)
	e.show("invoices")
	// Output:
	// published to mails: mail-order-1001
	// published to mails: mail-order-1001
	// consumer: invoices
	// invoices: 1
}
