package inboxmw_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// The function takes the transaction as any type that the store offers, here a
// [*sqlx.Tx]; a [*sql.Tx], or an interface that one of them satisfies, will do.
func ExampleTxHandler() {
	e := newExample()
	e.router.AddPlugin(inboxmw.MustNew(e.store, nil).Plugin)
	e.router.AddHandler("invoices", "orders", e.broker, "mails", printer{}, inboxmw.TxHandler(
		func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
			if _, err := tx.ExecContext(ctx, "INSERT INTO invoices (order_id) VALUES (?)", msg.UUID); err != nil {
				return nil, err
			}
			return []*message.Message{message.NewMessage("mail-"+msg.UUID, nil)}, nil
		}))
	e.deliver(order("order-1001"))
	e.show("invoices")
	// Output:
	// published to mails: mail-order-1001
	// invoices: 1
}

// Without the inbox around it the handler does not run, so that nothing is
// written unprotected.
func ExampleTxConsumerHandler() {
	h := inboxmw.TxConsumerHandler(func(ctx context.Context, tx *sql.Tx, msg *message.Message) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO invoices (order_id) VALUES (?)", msg.UUID)
		return err
	})
	fmt.Println(h(order("order-1001")))
	// Output:
	// inbox: no transaction: no *sql.Tx in this context; is the inbox middleware around this handler, and is this the context of the message?
}

// The filter goes to Watermill's PoisonQueueWithFilter, outside of the inbox.
func ExampleToPoison() {
	for _, err := range []error{
		errors.New("the order has no lines"),
		inbox.Key{Consumer: "invoices"}.Validate(),
		&inbox.StoreError{Op: inbox.OpClaim, Err: inbox.ErrInFlight},
		&inbox.StoreError{Op: inbox.OpConnect, Err: errors.New("connection refused")},
		fmt.Errorf("query: %w", context.Canceled),
	} {
		fmt.Println(inboxmw.ToPoison(err))
	}
	// Output:
	// true
	// true
	// false
	// false
	// false
}
