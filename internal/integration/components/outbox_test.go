package components_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// outbox is a publisher that writes to a table within a transaction.
type outbox struct{ tx *sqlx.Tx }

func openOutbox(tx *sqlx.Tx) (message.Publisher, error) { return outbox{tx: tx}, nil }

// Publish implements [message.Publisher].
func (o outbox) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		_, err := o.tx.ExecContext(m.Context(), "INSERT INTO outbox (uuid, topic, correlation_id) VALUES (?, ?, ?)",
			m.UUID, topic, middleware.MessageCorrelationID(m))
		if err != nil {
			return err
		}
	}
	return nil
}

// Close implements [message.Publisher].
func (outbox) Close() error { return nil }

func TestTxPublisherWritesToTheOutboxWithTheEffects(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, inboxmw.Config{})
			publish := c.bus(s, inboxmw.TxPublisher(openOutbox, s.sent))
			attempts := 0
			c.handle(s, func(ctx context.Context, id string) error {
				err := orders(publish)(ctx, id)
				if attempts++; attempts == 1 {
					return errHandler
				}
				return err
			})
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Failed, inbox.Processed)
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Duplicate)
			wantEqual(t, "published at once", s.sent.all(), nil)

			if err := publish(t.Context(), "o2"); err != nil {
				t.Error(err)
			}
			wantEqual(t, "published outside a handler", len(s.sent.all()), 1)
			s.stop()
			s.wantCount("orders", 1)
			s.wantCount("outbox WHERE topic = '"+c.topic+"'", 1)
			s.wantCount("outbox", 1)
		})
	}
}
