package inboxmw_test

import (
	"database/sql"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// tableOutbox writes messages into a table, for another process to relay.
// Publishers of watermill-sql do the same.
type tableOutbox struct{ tx *sql.Tx }

func (o tableOutbox) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		if _, err := o.tx.ExecContext(m.Context(), "INSERT INTO outbox (topic, uuid, payload) VALUES (?, ?, ?)", topic, m.UUID, []byte(m.Payload)); err != nil {
			return err
		}
	}
	return nil
}

func (o tableOutbox) Close() error { return nil }

// The mail is written in the transaction of the invoice; the router publishes none.
func ExampleOutbox() {
	e := newExample()
	in := inboxmw.MustNew(e.store, &inboxmw.Config{Handler: inboxmw.Handler{
		Produced: inboxmw.Outbox(func(tx *sql.Tx) (message.Publisher, error) {
			return tableOutbox{tx: tx}, nil
		}),
	}})
	e.router.AddPlugin(in.Plugin)
	e.router.AddHandler("invoices", "orders", e.broker, "mails", printer{}, inboxmw.TxHandler(makeInvoice))
	e.deliver(order("order-1001"), order("order-1001"))
	e.show("invoices", "outbox")
	// Output:
	// invoices: 1
	// outbox: 1
}

// A handler that is not meant to produce messages fails if it does, before its
// commit. The error is permanent: it belongs into a poison queue.
func ExampleReject() {
	e := newExample()
	e.router.AddMiddleware(func(h message.HandlerFunc) message.HandlerFunc { // stands for PoisonQueue
		return func(msg *message.Message) ([]*message.Message, error) {
			out, err := h(msg)
			if inboxmw.ToPoison(err) {
				fmt.Println("poison:", err)
				return nil, nil
			}
			return out, err
		}
	})
	e.router.AddPlugin(inboxmw.MustNew(e.store, &inboxmw.Config{Handler: inboxmw.Handler{Produced: inboxmw.Reject()}}).Plugin)
	e.router.AddHandler("invoices", "orders", e.broker, "mails", printer{}, inboxmw.TxHandler(makeInvoice))
	e.deliver(order("order-1001"))
	e.show("invoices")
	// Output:
	// poison: inbox: produced messages refused: the policy of this handler is Reject: use Replay or Outbox, or return none
	// invoices: 0
}
