package inboxsql_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

func TestWaitForAConnection(t *testing.T) {
	t.Parallel()

	t.Run("ends with an error that names the handler which waits for itself", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, &inboxsql.Config{ConnTimeout: 200 * time.Millisecond})
		_, _, err := s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
			_, _, err := s.store.Once(ctx, keyOf("2"), mustNotRun(t))
			mustBeAt(t, err, inbox.OpConnect)
			return inbox.Effect{}, err
		})
		if !errors.Is(err, context.DeadlineExceeded) || inbox.Permanent(err) {
			t.Errorf("got %v, want %q", err, context.DeadlineExceeded)
		}
		mustSay(t, err, "no connection became free in 200ms", "of 1", "query the pool while its transaction is open")
		s.mustProcess(t)
	})

	t.Run("ends with the context of the delivery", func(t *testing.T) {
		t.Parallel()
		for name, timeout := range map[string]time.Duration{"bounded": time.Hour, "unbounded": -1} {
			t.Run("if it is "+name, func(t *testing.T) {
				t.Parallel()
				s := openShop(t, &inboxsql.Config{ConnTimeout: timeout})
				conn, err := s.db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.failure(ctx, mustNotRun(t)) }()
				cancel()
				err = await(t, done)
				mustBeAt(t, err, inbox.OpConnect)
				if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "became free") {
					t.Errorf("got %v, want %q and no word on the bound", err, context.Canceled)
				}
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
				s.mustProcess(t)
			})
		}
	})

	t.Run("ends when a connection is given back", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, &inboxsql.Config{ConnTimeout: -1})
		conn, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.failure(t.Context(), write) }()
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if err := await(t, done); err != nil {
			t.Error(err)
		}
	})
}

func TestNamespacesAndTablesAreInboxesOfTheirOwn(t *testing.T) {
	t.Parallel()
	db := sqlitetest.OpenMemory(t)
	for _, cfg := range []inboxsql.Config{
		{}, {Namespace: "shop"}, {Namespace: "Shop"}, {Namespace: "shop.eu"}, {Table: "inbox"}, {Table: "inbox", Namespace: "shop"},
	} {
		s := inboxsql.MustNew(db, &cfg)
		if err := s.CreateTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []bool{false, true} {
			e, duplicate, err := s.Once(t.Context(), keyOf("1"), nothing)
			if err != nil || duplicate != want || e.Key != keyOf("1").Key {
				t.Errorf("%+v: got %+v, duplicate %v, error %v, want %v", cfg, e, duplicate, err, want)
			}
		}
	}
}

func TestEntryOfADuplicate(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	d := inbox.Delivery{
		Key:         inbox.Key{Consumer: "invoices", Source: "shop", MessageID: "order-1"},
		EventType:   strings.Repeat("T", 254) + "é",
		Fingerprint: []byte{0, 1, 255},
		SentAt:      time.Now(),
	}
	left := inbox.Effect{Record: []byte{0, 1, 255}, Result: []byte("INV-7")}
	before := time.Now().Add(-time.Millisecond).UTC() // the database's clock has milliseconds
	e, duplicate, err := s.store.Once(t.Context(), d, func(context.Context) (inbox.Effect, error) { return left, nil })
	if err != nil || duplicate || e.EventType != d.EventType || string(e.Record) != string(left.Record) || !e.ProcessedAt.IsZero() || e.Age != 0 {
		t.Fatalf("the first delivery: got %+v, duplicate %v, error %v", e, duplicate, err)
	}
	after := time.Now().Add(time.Millisecond).UTC()

	again := d
	again.EventType, again.Fingerprint = "Other", []byte("other") // not what was kept
	e, duplicate, err = s.store.Once(t.Context(), again, mustNotRun(t))
	if err != nil || !duplicate {
		t.Fatalf("got duplicate %v, error %v", duplicate, err)
	}
	if e.Key != d.Key || e.EventType != strings.Repeat("T", 254) || string(e.Fingerprint) != string(d.Fingerprint) || !e.SentAt.IsZero() {
		t.Errorf("got the delivery %+v, want what was kept, the event type cut to 255 bytes", e.Delivery)
	}
	if string(e.Record) != string(left.Record) || string(e.Result) != string(left.Result) || e.Discard != "" {
		t.Errorf("got the record %q, result %q, discard %q", e.Record, e.Result, e.Discard)
	}
	for name, at := range map[string]time.Time{"received": e.ReceivedAt, "processed": e.ProcessedAt} {
		if at.Before(before) || at.After(after) || at.Location() != time.UTC {
			t.Errorf("%s at %s, want between %s and %s, in UTC", name, at, before, after)
		}
	}
	if e.Age < 0 || e.Age > time.Since(before)+time.Millisecond {
		t.Errorf("got the age %s", e.Age)
	}
}

func TestNothingAndEmptyAreTwoThingsInTheTable(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	for id, left := range map[string]inbox.Effect{
		"nothing": {},
		"empty":   {Record: []byte{}, Result: []byte{}},
		"result":  {Result: []byte("a")},
	} {
		_, _, err := s.store.Once(t.Context(), keyOf(id), func(context.Context) (inbox.Effect, error) { return left, nil })
		if err != nil {
			t.Fatal(err)
		}
		for column, value := range map[string][]byte{"produced": left.Record, "result": left.Result} {
			if n := s.count(t, "inbox_messages WHERE message_id = '"+id+"' AND "+column+" IS NULL"); (n == 1) != (value == nil) {
				t.Errorf("%s: is %s NULL? %v", id, column, n == 1)
			}
		}
	}
}

func TestReasonOfADiscardIsCut(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	_, _, err := s.deliver(t.Context(), func(context.Context) (inbox.Effect, error) {
		return inbox.Effect{Discard: strings.Repeat("r", 999) + "é\x00"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e, duplicate, err := s.deliver(t.Context(), mustNotRun(t))
	if err != nil || !duplicate || e.Discard != strings.Repeat("r", 999) {
		t.Errorf("got a reason of %d bytes, duplicate %v, error %v", len(e.Discard), duplicate, err)
	}
}

func TestInvalidKeyIsRefusedWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t, "")
	s := inboxsql.MustNew(db, nil)
	_, _, err := s.Once(t.Context(), inbox.Delivery{Key: inbox.Key{Consumer: "invoices"}}, mustNotRun(t))
	if !errors.Is(err, inbox.ErrInvalidKey) || !inbox.Permanent(err) || db.Stats().OpenConnections > 0 {
		t.Errorf("got %v and %d connections", err, db.Stats().OpenConnections)
	}
}

func TestTxOutsideAndAfterTheHandler(t *testing.T) {
	t.Parallel()
	if _, err := inboxsql.Tx(t.Context()); !errors.Is(err, inbox.ErrNoTx) {
		t.Errorf("got %v, want %q", err, inbox.ErrNoTx)
	}
	if _, err := inboxsql.StdTx(t.Context()); !errors.Is(err, inbox.ErrNoTx) {
		t.Errorf("got %v, want %q", err, inbox.ErrNoTx)
	}
	s := openShop(t, nil)
	_, _, err := s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
		x, err := inboxsql.Tx(ctx)
		if err != nil {
			return inbox.Effect{}, err
		}
		std, err := inboxsql.StdTx(ctx)
		if x.Tx != std {
			t.Error("the two are not one transaction")
		}
		if sqlx.BindType(x.DriverName()) != sqlx.QUESTION {
			t.Errorf("the driver name is %q, which sqlx does not know", x.DriverName())
		}
		return inbox.Effect{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
