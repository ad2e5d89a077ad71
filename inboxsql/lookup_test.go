package inboxsql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
)

func TestLookup(t *testing.T) {
	t.Parallel()

	t.Run("a key that was never claimed has no entry", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, nil)
		if e, found, err := s.store.Lookup(t.Context(), keyOf("1").Key); found || err != nil {
			t.Errorf("got %+v, %v, %v", e, found, err)
		}
	})
	t.Run("an entry has what the delivery left, under the consumer without its namespace", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, &inboxsql.Config{Namespace: "shop"})
		d := keyOf("1")
		d.EventType, d.Fingerprint = "OrderPlaced", []byte{1, 2}
		if _, _, err := s.store.Once(t.Context(), d, func(context.Context) (inbox.Effect, error) {
			return inbox.Effect{Result: []byte("invoice 7"), Record: []byte{1, 0}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		e, found, err := s.store.Lookup(t.Context(), d.Key)
		if err != nil || !found {
			t.Fatalf("got %v, %v", found, err)
		}
		if e.Key != d.Key || e.EventType != "OrderPlaced" || string(e.Result) != "invoice 7" || len(e.Record) != 2 || e.ProcessedAt.IsZero() {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("an invalid key is refused", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, nil)
		if _, _, err := s.store.Lookup(t.Context(), inbox.Key{Consumer: "invoices"}); !errors.Is(err, inbox.ErrInvalidKey) {
			t.Errorf("got %v", err)
		}
	})
}

func TestForget(t *testing.T) {
	t.Parallel()

	t.Run("a forgotten key is processed again, and its entry was returned", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, nil)
		s.mustProcess(t)
		e, found, err := s.store.Forget(t.Context(), keyOf("1").Key)
		if err != nil || !found || e.Key != keyOf("1").Key || e.ProcessedAt.IsZero() {
			t.Fatalf("got %+v, %v, %v", e, found, err)
		}
		s.mustProcess(t)
	})
	t.Run("a key that is not there is not found, and stays free", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, nil)
		if _, found, err := s.store.Forget(t.Context(), keyOf("1").Key); found || err != nil {
			t.Fatalf("got %v, %v", found, err)
		}
		if n := s.count(t, "inbox_messages"); n != 0 {
			t.Fatalf("the table has %d rows", n)
		}
		s.mustProcess(t)
	})
	t.Run("another key, consumer or source is not touched", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, nil)
		for _, d := range []inbox.Delivery{
			keyOf("1"), keyOf("2"),
			{Key: inbox.Key{Consumer: "mails", MessageID: "1"}},
			{Key: inbox.Key{Consumer: "invoices", Source: "partner", MessageID: "1"}},
		} {
			if _, _, err := s.store.Once(t.Context(), d, write); err != nil {
				t.Fatal(err)
			}
		}
		if _, found, err := s.store.Forget(t.Context(), keyOf("1").Key); !found || err != nil {
			t.Fatalf("got %v, %v", found, err)
		}
		if n := s.count(t, "inbox_messages"); n != 3 {
			t.Errorf("%d keys are left, want 3", n)
		}
	})
	t.Run("it does not wait for a connection longer than its context", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if _, _, err := s.store.Forget(ctx, keyOf("1").Key); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func ExampleStore_Forget() {
	db := openDB()
	store := inboxsql.MustNew(db, nil)
	key := inbox.Key{Consumer: "invoices", MessageID: "order-17"}
	process := func() {
		_, duplicate, err := store.Once(context.Background(), inbox.Delivery{Key: key}, func(context.Context) (inbox.Effect, error) {
			return inbox.Effect{Result: []byte("invoice 7")}, nil
		})
		fmt.Println("duplicate:", duplicate, err)
	}
	process()
	process()
	entry, found, err := store.Forget(context.Background(), key)
	fmt.Printf("forgot %s, result %q, found %v, %v\n", entry.Key, entry.Result, found, err)
	process()
	if err := db.Close(); err != nil {
		panic(err)
	}
	// Output:
	// duplicate: false <nil>
	// duplicate: true <nil>
	// forgot invoices/order-17, result "invoice 7", found true, <nil>
	// duplicate: false <nil>
}

// A bug has been mended, and the archive of yesterday's orders is sent again.
func ExampleStore_ForgetRange() {
	db := openDB()
	store := inboxsql.MustNew(db, nil)
	for _, id := range []string{"order-17", "order-18"} {
		d := inbox.Delivery{Key: inbox.Key{Consumer: "invoices", MessageID: id}}
		if _, _, err := store.Once(context.Background(), d, func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil }); err != nil {
			panic(err)
		}
	}
	n, err := store.ForgetRange(context.Background(),
		inboxsql.Range{Consumer: "invoices", From: time.Now().Add(-24 * time.Hour)},
		func(e inbox.Entry) { fmt.Println("forgotten:", e.Key) })
	fmt.Println(n, err)
	if err := db.Close(); err != nil {
		panic(err)
	}
	// Unordered output:
	// forgotten: invoices/order-17
	// forgotten: invoices/order-18
	// 2 <nil>
}
