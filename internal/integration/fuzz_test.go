package integration_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

// FuzzKeys claims two keys on each database: both are new, whatever their bytes,
// or refused with a reason; none is taken for the other.
func FuzzKeys(f *testing.F) {
	for i, a := range texts {
		b := texts[(i+1)%len(texts)]
		f.Add("c", "", a, "c", "", b, "order.placed", []byte("record"))
		f.Add(a, b, "1", b, a, "1", a, []byte(a))
		f.Add("c", a, b, "c", b, a, b, []byte(nil))
		f.Add("c"+a, "", "1", "c", a, "1", "", []byte{0})
		f.Add("c", "", a+" ", "c", "", a, a+"\x00", []byte{0xff})
		f.Add("c", "", strings.ToUpper(a), "c", "", strings.ToLower(a), "", []byte(nil))
	}
	places := fuzzedPlaces(f)
	f.Fuzz(func(t *testing.T, consumerA, sourceA, idA, consumerB, sourceB, idB, eventType string, record []byte) {
		a := inbox.Key{Consumer: consumerA, Source: sourceA, MessageID: idA}
		b := inbox.Key{Consumer: consumerB, Source: sourceB, MessageID: idB}
		if a == b {
			t.Skip("one key")
		}
		for _, p := range places {
			p.exec(t, "DELETE FROM "+p.table)
			for _, round := range []bool{false, true} {
				p.claim(t, a, "a"+eventType, record, round)
				p.claim(t, b, "b"+eventType, record, round)
			}
		}
	})
}

// FuzzTableNames has the inbox in a table of any name: it is refused, or a table
// of exactly this name is used, and nothing else is touched.
func FuzzTableNames(f *testing.F) {
	for _, name := range append([]string{
		"inbox_messages", "Inbox", "INBOX", "select", "user", "order", "table", "_", "_1", "s.t", "S.T", "a.b.c", ".", "a.", ".a",
		strings.Repeat("t", 50), strings.Repeat("t", 51), `inbox"; DROP TABLE canary; --`, "inbox`; DROP TABLE canary; -- ",
		"inbox'", "inbox/**/", "inbox--", "inbox;", "canary; DELETE FROM canary", "{table}", "{name}", "$1", "?", ":id", "%s", "@x", "[x]",
	}, texts...) {
		f.Add(name)
	}
	places := fuzzedPlaces(f)
	f.Fuzz(func(t *testing.T, name string) {
		for _, p := range places {
			store, err := inboxsql.New(p.db, &inboxsql.Config{Table: name})
			if err != nil {
				if !strings.Contains(err.Error(), fmt.Sprintf("Config.Table %q", name)) {
					t.Errorf("%s: %q is refused with %v", p.name, name, err)
				}
				continue
			}
			if strings.Contains(name, ".") || strings.EqualFold(name, "canary") || strings.HasPrefix(strings.ToLower(name), "sqlite_") {
				continue // in a schema that is not this test's, or there already
			}
			named := fuzzedPlace{name: p.name, db: p.db, quote: p.quote, table: p.quote + cmp.Or(name, inboxsql.DefaultTable) + p.quote, store: store}
			if err := store.CreateTable(t.Context()); err != nil {
				t.Fatalf("%s: %q: %v", p.name, name, err)
			}
			for _, round := range []bool{false, true} {
				named.claim(t, d("1").Key, "a", nil, round)
			}
			named.exec(t, "DROP TABLE "+named.table) // there is one of this very name
			var left int
			if err := p.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM canary").Scan(&left); err != nil || left != 1 {
				t.Errorf("%s: after %q the canary has %d rows, %v", p.name, name, left, err)
			}
		}
	})
}

// fuzzedPlace is a database of the test's own with an inbox, and a table canary
// that has one row.
type fuzzedPlace struct {
	name  string
	db    *sql.DB
	quote string
	table string // as a statement has it
	store *inboxsql.Store
}

// fuzzedPlaces are one of each database. They need both servers.
func fuzzedPlaces(f *testing.F) []fuzzedPlace {
	f.Helper()
	places := []fuzzedPlace{
		{name: "PostgreSQL", quote: `"`, db: open(f, "pgx", ownPostgres(f))},
		{name: "MariaDB", quote: "`", db: open(f, "mysql", ownMariaDB(f))},
		{name: "SQLite", quote: `"`, db: sqlitetest.Open(f, "")},
	}
	for i := range places {
		p := &places[i]
		p.table = "fuzzed"
		p.store = inboxsql.MustNew(p.db, &inboxsql.Config{Table: p.table})
		if err := p.store.CreateTable(context.Background()); err != nil {
			f.Fatal(err)
		}
		p.exec(f, "CREATE TABLE canary (id INTEGER)")
		p.exec(f, "INSERT INTO canary VALUES (1)")
	}
	return places
}

func (p fuzzedPlace) exec(tb testing.TB, statement string) {
	tb.Helper()
	if _, err := p.db.ExecContext(context.Background(), statement); err != nil {
		tb.Fatalf("%s: %s: %v", p.name, statement, err)
	}
}

// claim delivers a key. known says that it was delivered before.
func (p fuzzedPlace) claim(t *testing.T, key inbox.Key, eventType string, record []byte, known bool) {
	t.Helper()
	e, duplicate, err := p.store.Once(t.Context(), inbox.Delivery{Key: key, EventType: eventType}, func(context.Context) (inbox.Effect, error) {
		return inbox.Effect{Record: record}, nil
	})
	if key.Validate() != nil {
		if refused, ok := errors.AsType[*inbox.KeyError](err); !ok || refused.Reason == "" || duplicate {
			t.Errorf("%s: %q is answered with %t, %v", p.name, key, duplicate, err)
		}
		return
	}
	switch {
	case err != nil:
		t.Errorf("%s: %q: %v", p.name, key, err)
	case duplicate != known:
		t.Errorf("%s: %q is a duplicate: %t, want %t", p.name, key, duplicate, known)
	case known && (e.Key != key || e.EventType[:1] != eventType[:1] || !bytes.Equal(e.Record, record)):
		t.Errorf("%s: %q, %q, %q is answered with %q, %q, %q", p.name, key, eventType, record, e.Key, e.EventType, e.Record)
	}
}

// texts are what databases fold, cut or take for something else.
//
//nolint:gochecknoglobals // constant
var texts = []string{
	"order", "Order", "order ", " order", "order\t", "order\r\n", "caf\u00e9", "cafe\u0301", "stra\u00dfe", "strasse", "STRASSE",
	"\u212b", "\u00c5", "\ufb01x", "fix", "i", "I", "\u0131", "\u0130", "7", "07", "7.0", "7e0", "0x7", "\u0667", "null", "NULL",
	"a\u200bb", "ab", "a\u00adb", "\ufeffab", "\U0001F600", "\U0001F601", "%", "_", "\x01", "\x7f", "\xff", "caf\xc3", "a\x00", "\x00",
	"'", "''", "\\", "\\'", "\"", "`", "~", "~/a", "/", ":", "a:b", "%3A", "'; ROLLBACK; --", "/*", "--", "$1", "?",
	"\u09dc", "\u09a1\u09bc", "\u1e9e", "\u01c4", "\u01c5", "\u03c3", "\u03c2", "\u0000", "\uffff", "\U0010ffff",
	strings.Repeat("c", 255), strings.Repeat("c", 256), strings.Repeat("\u00e9", 127) + "c", strings.Repeat("\U0001F600", 128), strings.Repeat("m", 512), strings.Repeat("m", 513),
}
