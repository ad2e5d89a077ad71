package inboxsql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

// shop is a database with an inbox and a table for effects, on a pool of one: a
// connection that a delivery leaves unusable breaks the next one.
type shop struct {
	db    *sql.DB
	store *inboxsql.Store
}

func openShop(t *testing.T, cfg *inboxsql.Config) *shop {
	t.Helper()
	return newShop(t, sqlitetest.Open(t, ""), cfg)
}

func newShop(t *testing.T, db *sql.DB, cfg *inboxsql.Config) *shop {
	t.Helper()
	db.SetMaxOpenConns(1)
	s := &shop{db: db, store: inboxsql.MustNew(db, cfg)}
	if err := s.store.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.exec(t, "CREATE TABLE effects (name TEXT)")
	return s
}

func (s *shop) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) count(t *testing.T, from string) (n int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

type handler func(ctx context.Context) (inbox.Effect, error)

// write is a handler that writes an effect.
func write(ctx context.Context) (inbox.Effect, error) {
	return inbox.Effect{}, effect(ctx)
}

func effect(ctx context.Context) error {
	tx, err := inboxsql.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO effects (name) VALUES ('effect')")
	return err
}

func keyOf(id string) inbox.Delivery {
	return inbox.Delivery{Key: inbox.Key{Consumer: "invoices", MessageID: id}}
}

// deliver delivers message 1.
func (s *shop) deliver(ctx context.Context, h handler) (e inbox.Entry, duplicate bool, err error) {
	return s.store.Once(ctx, keyOf("1"), h)
}

// failure is the error with which message 1 is delivered.
func (s *shop) failure(ctx context.Context, h handler) error {
	_, _, err := s.deliver(ctx, h)
	return err
}

// mustProcess wants message 1 to be processed now, and to be a duplicate after
// that, on connections that no transaction was left open on.
func (s *shop) mustProcess(t *testing.T) {
	t.Helper()
	before := s.count(t, "effects")
	for _, want := range []bool{false, true} {
		if _, duplicate, err := s.deliver(t.Context(), write); err != nil || duplicate != want {
			t.Fatalf("got duplicate %v, error %v, want %v and none", duplicate, err, want)
		}
	}
	if n := s.count(t, "effects"); n != before+1 {
		t.Fatalf("there are %d effects, want %d", n, before+1)
	}
}

// mustFail wants the delivery of message 1 to fail at op with an error that is
// each of targets.
func (s *shop) mustFail(t *testing.T, h handler, op inbox.Op, targets ...error) {
	t.Helper()
	_, duplicate, err := s.deliver(t.Context(), h)
	mustBeAt(t, err, op)
	for _, target := range targets {
		if duplicate || !errors.Is(err, target) {
			t.Fatalf("got duplicate %v, error %v, want %q", duplicate, err, target)
		}
	}
}

func mustBeAt(t *testing.T, err error, op inbox.Op) {
	t.Helper()
	if e := (*inbox.StoreError)(nil); !errors.As(err, &e) || e.Op != op || e.Key.Consumer != "invoices" {
		t.Fatalf("got %v, want a StoreError at %s with the key", err, op)
	}
}

func mustSay(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not say %q", err, text)
		}
	}
}

// await returns what comes from c, which must not take long.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing happened for 30 seconds")
		panic("unreachable")
	}
}
