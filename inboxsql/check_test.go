package inboxsql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

// durable is a database as it should be used.
const durable = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(100)&_txlock=immediate"

func TestCheckFindsNothingWhereAllIsWell(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]*sql.DB{
		"in a file":                           sqlitetest.Open(t, durable),
		"in a file, with the default journal": sqlitetest.Open(t, "?_pragma=busy_timeout(100)"),
		"in memory, with one connection":      sqlitetest.OpenMemory(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inboxsql.MustNew(db, nil)
			if err := s.CreateTable(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustFind(t, s)
			if _, duplicate, err := s.Once(t.Context(), keyOf("1"), nothing); err != nil || duplicate {
				t.Errorf("a delivery after the check: got duplicate %v, error %v", duplicate, err)
			}
		})
	}
}

func TestCheckFindsTheMissingTable(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t, durable)
	s := inboxsql.MustNew(db, &inboxsql.Config{Table: "orders_inbox"})
	findings, err := s.Check(t.Context())
	if err != nil || len(findings) == 0 || !findings[0].Fatal {
		t.Fatalf("got %v, %v, want a fatal finding first", findings, err)
	}
	ddl, err := inboxsql.Schema(inboxsql.SQLite, "orders_inbox")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(findings[0].Problem, "orders_inbox") || !strings.Contains(findings[0].Remedy, ddl) {
		t.Errorf("got %+v, want the table's name and statements", findings[0])
	}

	// The remedy is all that is needed, and the next check sees it.
	if _, err := db.ExecContext(t.Context(), ddl); err != nil {
		t.Fatal(err)
	}
	mustFind(t, s)
	if _, err := db.ExecContext(t.Context(), "DROP TABLE orders_inbox"); err != nil {
		t.Fatal(err)
	}
	if findings, err := s.Check(t.Context()); err != nil || len(findings) == 0 || !findings[0].Fatal {
		t.Errorf("after the table went: got %v, %v, want a fatal finding first", findings, err)
	}
}

func TestCheckFindsAMemoryOfItsOwnForEachConnection(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"without a limit of connections": 0, "with two connections": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqlitetest.OpenMemory(t)
			db.SetMaxOpenConns(most)
			s := inboxsql.MustNew(db, nil)
			if err := s.CreateTable(t.Context()); err != nil {
				t.Fatal(err)
			}
			findings, err := s.Check(t.Context())
			if err != nil || len(findings) != 1 || !findings[0].Fatal ||
				!strings.Contains(findings[0].Problem, ":memory:") || !strings.Contains(findings[0].Remedy, "SetMaxOpenConns(1)") {
				t.Errorf("got %+v, %v", findings, err)
			}
		})
	}
}

func TestCheckAdvises(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query  string // of the DSN
		change string // after the table was created
		conns  int
		cfg    inboxsql.Config
		want   []string
	}{
		"to wait for the disk": {
			query: strings.Replace(durable, "synchronous(FULL)", "synchronous(NORMAL)", 1),
			want:  []string{"synchronous is below FULL"},
		},
		"to keep a journal": {
			query: strings.Replace(durable, "journal_mode(WAL)", "journal_mode(MEMORY)", 1),
			want:  []string{"the journal mode is memory"},
		},
		"to wait for other writers": {
			query: strings.Replace(durable, "busy_timeout(100)", "busy_timeout(0)", 1),
			want:  []string{"busy_timeout is 0"},
		},
		"to have an index": {
			query:  durable,
			change: "DROP INDEX inbox_messages_received_at",
			want:   []string{"no index begins with received_at"},
		},
		"an index that begins with another column is not one": {
			query:  durable,
			change: "DROP INDEX inbox_messages_received_at; CREATE INDEX other ON inbox_messages (event_type, received_at)",
			want:   []string{"no index begins with received_at"},
		},
		"more connections than deliveries": {
			query: durable, conns: 2, cfg: inboxsql.Config{Deliveries: 2},
			want: []string{"each of the pool's 2 connections"},
		},
		"more connections, if there are fewer": {
			query: durable, conns: 1, cfg: inboxsql.Config{Deliveries: 4},
			want: []string{"1 connections for 4 concurrent deliveries"},
		},
		"nothing with enough connections":         {query: durable, conns: 3, cfg: inboxsql.Config{Deliveries: 2}},
		"nothing with any number of them":         {query: durable, cfg: inboxsql.Config{Deliveries: 2}},
		"nothing without a declared number":       {query: durable, conns: 1},
		"nothing on an index with another column": {query: durable, change: "DROP INDEX inbox_messages_received_at; CREATE INDEX other ON inbox_messages (received_at, event_type)"},
		"each of several things": {
			query: "?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=busy_timeout(0)", conns: 1, cfg: inboxsql.Config{Deliveries: 2},
			want: []string{"synchronous", "journal mode is off", "busy_timeout", "concurrent deliveries"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqlitetest.Open(t, c.query)
			db.SetMaxOpenConns(c.conns)
			s := inboxsql.MustNew(db, &c.cfg)
			if err := s.CreateTable(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), c.change); err != nil {
				t.Fatal(err)
			}
			mustFind(t, s, c.want...)
		})
	}
}

func TestCheckThatCannotLookIsAnError(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	findings, err := s.store.Check(ctx)
	if !errors.Is(err, context.Canceled) || len(findings) > 0 {
		t.Errorf("got %v, %v, want %q", findings, err, context.Canceled)
	}
}

// mustFind wants the check to give these pieces of advice and no more, in that
// order, and to know a remedy for each.
func mustFind(t *testing.T, c inbox.Checker, problems ...string) {
	t.Helper()
	got, err := c.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(problems) {
		t.Fatalf("found %v, want %q", got, problems)
	}
	for i, f := range got {
		if f.Fatal || !strings.Contains(f.Problem, problems[i]) || f.Remedy == "" {
			t.Errorf("found %+v, want advice on %q", f, problems[i])
		}
	}
}
