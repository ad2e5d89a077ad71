package components_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

var errHandler = errors.New("out of paper")

// marshaler is that of all buses and processors.
var marshaler = cqrs.JSONMarshaler{GenerateName: cqrs.StructName} //nolint:gochecknoglobals // constant

// shop is a service: a database with an inbox and tables for effects, and a
// router on a broker in memory.
type shop struct {
	t      *testing.T
	db     *sql.DB
	in     *inboxmw.Inbox
	broker *gochannel.GoChannel
	router *message.Router
	sent   *ledger
	ends   events

	running bool
	stopped chan error
}

// openShop makes a shop with an inbox of this configuration.
func openShop(t *testing.T, cfg inboxmw.Config) *shop {
	t.Helper()
	db := sqlitetest.Open(t, sqlitetest.WAL+"&_pragma=foreign_keys(1)")
	if err := inboxsql.MustNew(db, nil).CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := openShopOn(t, db, cfg)
	// An order of a customer who is not there has the commit fail, and not before.
	for _, statement := range []string{
		"CREATE TABLE customers (id TEXT PRIMARY KEY)",
		"CREATE TABLE orders (id TEXT NOT NULL, customer TEXT REFERENCES customers (id) DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TABLE bookings (id TEXT NOT NULL)",
		"CREATE TABLE outbox (uuid TEXT NOT NULL, topic TEXT NOT NULL, correlation_id TEXT NOT NULL)",
	} {
		s.exec(statement)
	}
	return s
}

// openShopOn is another process of the service on the same database.
func openShopOn(t *testing.T, db *sql.DB, cfg inboxmw.Config) *shop {
	t.Helper()
	s := &shop{
		t:       t,
		db:      db,
		broker:  gochannel.NewGoChannel(gochannel.Config{}, nil),
		ends:    make(events, 64),
		stopped: make(chan error, 1),
	}
	s.sent = &ledger{shop: s, came: make(chan entry, 256)}
	cfg.Observers = []inbox.Observer{s.ends}
	s.in = inboxmw.MustNew(inboxsql.MustNew(db, nil), &cfg)
	var err error
	if s.router, err = message.NewRouter(message.RouterConfig{CloseTimeout: patience}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs the router until [shop.stop], or the end of the test.
func (s *shop) start() {
	s.t.Helper()
	s.running = true
	go func() { s.stopped <- s.router.Run(context.WithoutCancel(s.t.Context())) }()
	select {
	case <-s.router.Running():
	case err := <-s.stopped:
		s.t.Fatalf("the router did not start: %v", err)
	}
	s.t.Cleanup(s.stop)
}

// stop closes the router, which waits for its handlers: what is counted after it
// is final.
func (s *shop) stop() {
	s.t.Helper()
	if !s.running {
		return
	}
	s.running = false
	if err := s.router.Close(); err != nil {
		s.t.Error(err)
	}
	if err := await(s.t, s.stopped, "the end of the router"); err != nil {
		s.t.Error(err)
	}
}

// deliver has the broker deliver an event or a command, in the same message each
// time: the second one is a duplicate.
func (s *shop) deliver(v any) {
	s.t.Helper()
	msg, err := marshaler.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	msg.UUID = "m1"
	if err := s.broker.Publish(marshaler.Name(v), msg); err != nil {
		s.t.Fatal(err)
	}
}

// wantOutcomes waits for as many deliveries, and fails unless they ended so.
func (s *shop) wantOutcomes(want ...inbox.Outcome) {
	s.t.Helper()
	for i, outcome := range want {
		if e := await(s.t, s.ends, "the end of a delivery"); e.Outcome != outcome {
			s.t.Fatalf("delivery %d is %s (%v), want %s", i+1, e.Outcome, e.Err, outcome)
		}
	}
}

// wantCount fails unless that many rows of the table are committed.
func (s *shop) wantCount(table string, want int) {
	s.t.Helper()
	if got := s.mustCount(table); got != want {
		s.t.Errorf("%d rows in %s, want %d", got, table, want)
	}
}

// keys is the table of the inbox.
const keys = inboxsql.DefaultTable

func (s *shop) count(table string) (n int, err error) {
	err = s.db.QueryRowContext(context.WithoutCancel(s.t.Context()), "SELECT count(*) FROM "+table).Scan(&n)
	return n, err
}

func (s *shop) mustCount(table string) int {
	s.t.Helper()
	n, err := s.count(table)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *shop) exec(statement string) {
	s.t.Helper()
	if _, err := s.db.ExecContext(s.t.Context(), statement); err != nil {
		s.t.Fatal(err)
	}
}

// write is the effect of a handler, through the transaction in ctx.
func write(ctx context.Context, table, id string) error {
	tx, err := inboxsql.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+table+" (id) VALUES (?)", id)
	return err
}

// writeWrongly is an effect that the database refuses at the commit.
func writeWrongly(ctx context.Context, id string) error {
	tx, err := inboxsql.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO orders (id, customer) VALUES (?, 'nobody')", id)
	return err
}

// events is an observer that hands the ends of deliveries out, as far as there is
// room: a broker that redelivers at once has more than a test asks for.
type events chan inbox.Event

func (events) DeliveryStart(ctx context.Context, _ inbox.Delivery) context.Context { return ctx }

func (e events) DeliveryEnd(_ context.Context, event inbox.Event) {
	select {
	case e <- event:
	default:
	}
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

func await[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatalf("%s did not come within %s", what, patience)
		panic("unreachable")
	}
}

// wantEqual fails unless got is want.
func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
