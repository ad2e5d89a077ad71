package inboxmw_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// shop is a database with an inbox and a table for the handler's effects.
type shop struct {
	db    *sql.DB
	store *inboxsql.Store
}

func openShop(tb testing.TB) *shop {
	tb.Helper()
	db := sqlitetest.Open(tb, "")
	store := inboxsql.MustNew(db, nil)
	if err := store.CreateTable(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	if _, err := db.ExecContext(tb.Context(), "CREATE TABLE invoices (order_id TEXT NOT NULL)"); err != nil {
		tb.Fatal(err)
	}
	return &shop{db: db, store: store}
}

// invoices returns the effects.
func (s *shop) invoices(tb testing.TB) []string {
	tb.Helper()
	rows, err := s.db.QueryContext(tb.Context(), "SELECT order_id FROM invoices ORDER BY rowid")
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // reported by rows.Err
	var all []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			tb.Fatal(err)
		}
		all = append(all, id)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// invoice is the handler: it writes an invoice for an order, and sends a mail.
func invoice(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
	if _, err := tx.ExecContext(ctx, "INSERT INTO invoices (order_id) VALUES (?)", msg.UUID); err != nil {
		return nil, err
	}
	return []*message.Message{message.NewMessageWithContext(ctx, "mail for "+msg.UUID, []byte("invoice"))}, nil
}

// downstream is a publisher that fails at first, and tells what it was given.
type downstream struct {
	mu     sync.Mutex
	fails  int
	failed []string
	sent   chan *message.Message
}

func newDownstream(fails int) *downstream {
	return &downstream{fails: fails, sent: make(chan *message.Message, 16)}
}

func (d *downstream) Publish(_ string, messages ...*message.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails > 0 {
		d.fails--
		d.failed = append(d.failed, uuids(messages)...)
		return errors.New("the broker is gone")
	}
	for _, m := range messages {
		if err := m.Context().Err(); err != nil {
			return err
		}
		d.sent <- m
	}
	return nil
}

func (d *downstream) Close() error { return nil }

// events is an observer that hands the ends of deliveries out.
type events chan inbox.Event

func (events) DeliveryStart(ctx context.Context, _ inbox.Delivery) context.Context { return ctx }

func (e events) DeliveryEnd(_ context.Context, event inbox.Event) { e <- event }

// start runs a router until the test ends.
func start(tb testing.TB, router *message.Router) {
	tb.Helper()
	stopped := make(chan error, 1)
	go func() { stopped <- router.Run(context.WithoutCancel(tb.Context())) }()
	select {
	case <-router.Running():
	case err := <-stopped:
		tb.Fatalf("the router did not start: %v", err)
	}
	tb.Cleanup(func() {
		if err := router.Close(); err != nil {
			tb.Error(err)
		}
		if err := <-stopped; err != nil {
			tb.Error(err)
		}
	})
}

func newRouter(tb testing.TB) *message.Router {
	tb.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: time.Minute}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return router
}

func newGoChannel() *gochannel.GoChannel {
	return gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
}

func publish(tb testing.TB, publisher message.Publisher, uuid string) {
	tb.Helper()
	if err := publisher.Publish(subscribeTopic, message.NewMessage(uuid, []byte(`{}`))); err != nil {
		tb.Fatal(err)
	}
}

func TestRouterOutputIsPublishedAfterPublishingFailed(t *testing.T) {
	t.Parallel()
	s, broker, down, ends := openShop(t), newGoChannel(), newDownstream(2), make(events, 16)
	router := newRouter(t)
	router.AddPlugin(inboxmw.MustNew(s.store, &inboxmw.Config{Observers: []inbox.Observer{ends}}).Plugin)
	router.AddHandler(handlerName, subscribeTopic, broker, publishTopic, down, inboxmw.TxHandler(invoice))
	start(t, router)
	publish(t, broker, "o1")
	got := <-down.sent
	if got.UUID != "mail for o1" || string(got.Payload) != "invoice" {
		t.Errorf("got %q %q", got.UUID, got.Payload)
	}
	wantEqual(t, "messages that were not published", down.failed, []string{"mail for o1", "mail for o1"})
	wantEqual(t, "outcomes", []inbox.Outcome{(<-ends).Outcome, (<-ends).Outcome, (<-ends).Outcome}, []inbox.Outcome{inbox.Processed, inbox.Duplicate, inbox.Duplicate})
	wantEqual(t, "invoices", s.invoices(t), []string{"o1"})
}

func TestRouterRedeliversUntilTheHandlerSucceeds(t *testing.T) {
	t.Parallel()
	s, broker, down := openShop(t), newGoChannel(), newDownstream(0)
	attempts := 0 // one delivery at a time
	router := newRouter(t)
	router.AddMiddleware(inboxmw.MustNew(s.store, nil).Middleware)
	router.AddHandler(handlerName, subscribeTopic, broker, publishTopic, down, func(msg *message.Message) ([]*message.Message, error) {
		out, err := inboxmw.TxHandler(invoice)(msg)
		mutate(msg)
		switch attempts++; attempts {
		case 1:
			return out, errHandler
		case 2:
			panic("out of paper")
		case 3:
			runtime.Goexit()
		}
		return out, err
	})
	start(t, router)
	publish(t, broker, "o1")
	wantEqual(t, "message", (<-down.sent).UUID, "mail for o1")
	wantEqual(t, "invoices", s.invoices(t), []string{"o1"})
	if attempts != 4 {
		t.Errorf("%d attempts", attempts)
	}
}

func TestRouterThatClosesLetsAHandlerCommit(t *testing.T) {
	t.Parallel()
	s, broker, ends := openShop(t), newGoChannel(), make(events, 16)
	cancelled := make(chan (<-chan struct{}), 1)
	running := make(chan struct{})
	router := newRouter(t)
	router.AddMiddleware(func(h message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			cancelled <- msg.Context().Done()
			return h(msg)
		}
	})
	router.AddPlugin(inboxmw.MustNew(s.store, &inboxmw.Config{Observers: []inbox.Observer{ends}}).Plugin)
	router.AddConsumerHandler(handlerName, subscribeTopic, broker, func(msg *message.Message) error {
		close(running)
		<-<-cancelled // the router closes
		_, err := inboxmw.TxHandler(invoice)(msg)
		return err
	})
	start(t, router)
	publish(t, broker, "o1")
	<-running
	if err := router.Close(); err != nil {
		t.Fatal(err)
	}
	if e := <-ends; e.Outcome != inbox.Processed {
		t.Errorf("got %+v", e)
	}
	wantEqual(t, "invoices", s.invoices(t), []string{"o1"})

	// The ack came too late for the broker, which delivers once more.
	broker = newGoChannel()
	router = newRouter(t)
	router.AddPlugin(inboxmw.MustNew(s.store, &inboxmw.Config{Observers: []inbox.Observer{ends}}).Plugin)
	router.AddConsumerHandler(handlerName, subscribeTopic, broker, func(*message.Message) error { return errHandler })
	start(t, router)
	publish(t, broker, "o1")
	if e := <-ends; e.Outcome != inbox.Duplicate || e.Err != nil {
		t.Errorf("got %+v", e)
	}
}

func TestRouterHandlerOnAPreservedContextHasNoForeignTransaction(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	broker := gochannel.NewGoChannel(gochannel.Config{PreserveContext: true}, nil)
	seen := make(chan error, 1)
	done := make(chan struct{})
	router := newRouter(t)
	router.AddPlugin(inboxmw.MustNew(s.store, &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"reports": {Unprotected: true}}}).Plugin)
	router.AddConsumerHandler(handlerName, subscribeTopic, broker, inboxmw.TxConsumerHandler(func(ctx context.Context, _ *sql.Tx, msg *message.Message) error {
		defer close(done)
		if err := broker.Publish("reports", message.NewMessageWithContext(ctx, "r1", nil)); err != nil {
			return err
		}
		err := <-seen
		if !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("got %v", err)
		}
		return nil
	}))
	router.AddConsumerHandler("reports", "reports", broker, func(msg *message.Message) error {
		_, err := inboxsql.Tx(msg.Context())
		seen <- err
		return nil
	})
	start(t, router)
	publish(t, broker, "o1")
	<-done
}

func TestRouterPluginRefusesADatabaseWithoutTheTable(t *testing.T) {
	t.Parallel()
	store := inboxsql.MustNew(sqlitetest.Open(t, ""), nil)
	p := newPlugged(t, map[string]message.HandlerFunc{handlerName: writes("1")})
	p.AddPlugin(inboxmw.MustNew(store, nil).Plugin)
	err := p.Run(t.Context())
	wantText(t, err, "inbox_messages", "CREATE TABLE")
	if p.subscribed.Load() != 0 {
		t.Error("the router has subscribed")
	}
}

func TestRouterDeliversManyMessagesSeveralTimes(t *testing.T) {
	t.Parallel()
	s, broker, down := openShop(t), newGoChannel(), newDownstream(0)
	in := inboxmw.MustNew(s.store, nil)
	router := newRouter(t)
	router.AddMiddleware(duplicator)
	router.AddPlugin(in.Plugin)
	router.AddHandler(handlerName, subscribeTopic, broker, publishTopic, down, inboxmw.TxHandler(invoice))
	start(t, router)
	want := []string{"o1", "o2", "o3", "o4", "o5"}
	for _, uuid := range want {
		publish(t, broker, uuid)
		publish(t, broker, uuid)
		for range 4 {
			wantEqual(t, "message", (<-down.sent).UUID, "mail for "+uuid)
		}
	}
	got := s.invoices(t)
	slices.Sort(got)
	wantEqual(t, "invoices", got, want)
}
