package inboxsql_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

// BenchmarkOnce measures the store on SQLite, whose commits do not wait for the
// disk here: what the inbox itself costs, and a transaction of one statement
// beside it.
func BenchmarkOnce(b *testing.B) {
	db := sqlitetest.Open(b, "")
	db.SetMaxOpenConns(1)
	s := inboxsql.MustNew(db, nil)
	if err := s.CreateTable(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := db.ExecContext(b.Context(), "CREATE TABLE effects (name TEXT)"); err != nil {
		b.Fatal(err)
	}
	d := inbox.Delivery{Key: inbox.Key{Consumer: "invoices"}, EventType: "OrderPlaced"}
	id := 0
	first := func(b *testing.B, h handler) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			id++
			d.Key.MessageID = "6f1c2a4e-9a53-4f0d-8f0b-" + strconv.Itoa(id)
			if _, duplicate, err := s.Once(b.Context(), d, h); err != nil || duplicate {
				b.Fatalf("got duplicate %v, error %v", duplicate, err)
			}
		}
	}
	b.Run("without", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tx, err := db.BeginTx(b.Context(), nil)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := tx.ExecContext(b.Context(), "INSERT INTO effects (name) VALUES ('effect')"); err != nil {
				b.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) { first(b, write) })
	b.Run("first/with a record", func(b *testing.B) {
		record := make([]byte, 1024)
		first(b, func(ctx context.Context) (inbox.Effect, error) { return inbox.Effect{Record: record}, effect(ctx) })
	})
	b.Run("duplicate", func(b *testing.B) {
		d.Key.MessageID = "duplicate"
		if _, _, err := s.Once(b.Context(), d, write); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, duplicate, err := s.Once(b.Context(), d, write); err != nil || !duplicate {
				b.Fatalf("got duplicate %v, error %v", duplicate, err)
			}
		}
	})
}
