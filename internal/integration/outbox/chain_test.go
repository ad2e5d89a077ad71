package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

const (
	desks  = 3  // handlers of the sales service, each with a topic of its own
	orders = 12 // on each of these topics
	parts  = 2  // messages that each order produces
)

// chain is two services with an outbox and a relay between them:
//
//	orders -> sales -> outbox -> relay -> invoices -> billing
//
// Sales and billing are protected. Sales writes its produced messages to the
// outbox. Billing must have an effect for each of them, once.
type chain struct {
	flavour
	*database
	envelope bool

	sales, billing               *inboxsql.Store
	salesEffects, billingEffects string
	salesSeen, billingSeen       *duplicates
}

func TestChain(t *testing.T) {
	t.Parallel()
	for _, f := range flavours() {
		for _, envelope := range []bool{false, true} {
			name := f.name
			if envelope {
				name += ", with the forwarder's envelope"
			}
			t.Run(name+": each message once at the end, though all are killed on the way", func(t *testing.T) {
				t.Parallel()
				newChain(t, f, envelope).run(t)
			})
		}
	}
}

func newChain(t *testing.T, f flavour, envelope bool) *chain {
	t.Helper()
	c := &chain{flavour: f, database: f.server.open(t, f.driver, ""), envelope: envelope, salesSeen: &duplicates{}, billingSeen: &duplicates{}}
	c.sales, c.salesEffects = c.store(t, "sales")
	c.billing, c.billingEffects = c.store(t, "billing")
	f.makeTopics(t, c.database, c.topic("outbox"), c.topic("invoices"))
	for desk := range desks {
		f.makeTopics(t, c.database, c.topic(fmt.Sprint("orders", desk)))
	}
	return c
}

func (c *chain) topic(name string) string { return name + c.suffix }

func (c *chain) run(t *testing.T) {
	t.Helper()
	services := []*service{
		start(t, []death{{midWork, 5}, {beforeAck, 7}, {midWork, 3}, {beforeAck, 1}}, c.buildSales),
		start(t, []death{{beforeAck, 9}, {midWork, 6}, {beforeAck, 1}, {beforeAck, 12}}, c.buildRelay),
		start(t, []death{{beforeAck, 11}, {midWork, 8}, {beforeAck, 1}, {midWork, 1}}, c.buildBilling),
	}
	want := map[string]int{}
	for desk := range desks {
		for n := range orders {
			c.order(t, desk, strconv.Itoa(n), want)
		}
	}
	c.await(t, want)
	for _, s := range services {
		select {
		case <-s.died:
		case <-time.After(patience):
			t.Fatal("a service did not die as often as planned, so this shows nothing")
		}
	}
	// What comes after these, on any way, came after all that went before.
	for desk := range desks {
		c.order(t, desk, "last", want)
	}
	c.await(t, want)

	wantCounts(t, "sales", c.count(t, "SELECT id FROM "+c.salesEffects), ordersOf(want))
	wantCounts(t, "billing", c.count(t, "SELECT id FROM "+c.billingEffects), want)
	if c.salesSeen.n.Load() == 0 || c.billingSeen.n.Load() == 0 {
		t.Errorf("%d duplicates came to sales and %d to billing: this shows nothing", c.salesSeen.n.Load(), c.billingSeen.n.Load())
	}
}

// order sends an order, every fifth one twice, and adds what must come of it.
func (c *chain) order(t *testing.T, desk int, name string, want map[string]int) {
	t.Helper()
	id := fmt.Sprintf("%d-%s", desk, name)
	topic := c.topic(fmt.Sprint("orders", desk))
	msg := message.NewMessage("order-"+id, payload(id))
	c.publish(t, c.database, topic, msg)
	if len(want)%(5*parts) == 0 {
		c.publish(t, c.database, topic, msg)
	}
	for part := range parts {
		want[fmt.Sprintf("%s/%d", id, part)] = 1
	}
}

// await waits until billing has an effect of everything.
func (c *chain) await(t *testing.T, want map[string]int) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for {
		got := c.count(t, "SELECT id FROM "+c.billingEffects)
		if len(got) >= len(want) {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("billing has %d of %d, sales %d", len(got), len(want), len(c.count(t, "SELECT id FROM "+c.salesEffects)))
		}
	}
}

func (c *chain) buildSales(r *message.Router, l *life) error {
	open, publishTopic := c.inTx, c.topic("outbox")
	if c.envelope {
		open, publishTopic = c.inEnvelope, c.topic("invoices")
	}
	in, err := inboxmw.New(c.sales, &inboxmw.Config{
		Handler: inboxmw.Handler{Produced: inboxmw.Outbox(func(tx *sql.Tx) (message.Publisher, error) {
			publisher, err := open(tx)
			return mortal{publisher, l}, err
		})},
		Observers: []inbox.Observer{c.salesSeen},
	})
	if err != nil {
		return err
	}
	r.AddPlugin(in.Plugin)
	for desk := range desks {
		from, err := c.subscriber(c.DB, nil)
		if err != nil {
			return err
		}
		r.AddHandler(fmt.Sprint("sales", desk), c.topic(fmt.Sprint("orders", desk)), from, publishTopic, none{},
			inboxmw.TxHandler(func(ctx context.Context, tx *sql.Tx, msg *message.Message) ([]*message.Message, error) {
				id, err := write(ctx, tx, c.salesEffects, msg)
				if err != nil {
					return nil, err
				}
				var out []*message.Message
				for part := range parts {
					out = append(out, message.NewMessage(watermill.NewUUID(), payload(fmt.Sprintf("%s/%d", id, part))))
				}
				return out, nil
			}))
	}
	return nil
}

// inEnvelope is the publisher of the flavour, with the envelope of the forwarder.
func (c *chain) inEnvelope(tx *sql.Tx) (message.Publisher, error) {
	publisher, err := c.inTx(tx)
	if err != nil {
		return nil, err
	}
	return forwarder.NewPublisher(publisher, forwarder.PublisherConfig{ForwarderTopic: c.topic("outbox")}), nil
}

func (c *chain) buildRelay(r *message.Router, l *life) error {
	from, err := c.subscriber(c.DB, nil)
	if err != nil {
		return err
	}
	to, err := c.publisher(c.DB)
	if err != nil {
		return err
	}
	r.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			if err := l.pass(midWork); err != nil {
				return nil, err
			}
			return next(msg)
		}
	})
	if c.envelope {
		_, err := forwarder.NewForwarder(from, to, watermill.NopLogger{}, forwarder.Config{ForwarderTopic: c.topic("outbox"), Router: r})
		return err
	}
	r.AddConsumerHandler("relay", c.topic("outbox"), from, func(msg *message.Message) error {
		return to.Publish(c.topic("invoices"), msg.Copy())
	})
	return nil
}

func (c *chain) buildBilling(r *message.Router, l *life) error {
	in, err := inboxmw.New(c.billing, &inboxmw.Config{Observers: []inbox.Observer{c.billingSeen}})
	if err != nil {
		return err
	}
	r.AddPlugin(in.Plugin)
	from, err := c.subscriber(c.DB, nil)
	if err != nil {
		return err
	}
	r.AddConsumerHandler("billing", c.topic("invoices"), from,
		inboxmw.TxConsumerHandler(func(ctx context.Context, tx *sql.Tx, msg *message.Message) error {
			if _, err := write(ctx, tx, c.billingEffects, msg); err != nil {
				return err
			}
			return l.pass(midWork)
		}))
	return nil
}

// write writes the effect of a message, which is the id in its payload.
func write(ctx context.Context, tx *sql.Tx, table string, msg *message.Message) (id string, err error) {
	if err = json.Unmarshal(msg.Payload, &id); err != nil {
		return "", err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+table+" (id) VALUES ('"+id+"')") //nolint:gosec // our own ids
	return id, err
}

func payload(id string) message.Payload { return message.Payload(`"` + id + `"`) }

// mortal is a publisher to the outbox whose process may die before the transaction
// is committed.
type mortal struct {
	message.Publisher
	life *life
}

func (m mortal) Publish(topic string, messages ...*message.Message) error {
	if err := m.Publisher.Publish(topic, messages...); err != nil {
		return err
	}
	return m.life.pass(midWork)
}

// none is the publisher of a handler whose messages go to an outbox.
type none struct{}

func (none) Publish(topic string, _ ...*message.Message) error {
	return fmt.Errorf("the router publishes to %q", topic)
}

func (none) Close() error { return nil }

// duplicates counts them.
type duplicates struct{ n atomic.Int64 }

func (d *duplicates) DeliveryStart(ctx context.Context, _ inbox.Delivery) context.Context { return ctx }

func (d *duplicates) DeliveryEnd(_ context.Context, e inbox.Event) {
	if e.Outcome == inbox.Duplicate {
		d.n.Add(1)
	}
}

// ordersOf returns the orders that produced the parts.
func ordersOf(want map[string]int) map[string]int {
	out := map[string]int{}
	for id := range want {
		order, _, _ := strings.Cut(id, "/")
		out[order] = 1
	}
	return out
}

func wantCounts(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	for id, n := range got {
		if n > 1 {
			t.Errorf("%s: %q is there %d times", what, id, n)
		}
		if want[id] == 0 {
			t.Errorf("%s: %q is there, and nobody sent it", what, id)
		}
	}
	for id := range want {
		if got[id] == 0 {
			t.Errorf("%s: %q is lost", what, id)
		}
	}
}
