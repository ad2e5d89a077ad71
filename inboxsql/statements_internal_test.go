package inboxsql

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
)

var update = flag.Bool("update", false, "write the golden files anew") //nolint:gochecknoglobals // flags are

// What runs in databases of others does not change unseen: a difference here is
// an entry in the changelog.
func TestStatementsAreFrozen(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(string(d.name), func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, table := range []string{"inbox_messages", "shop.inbox"} {
				write := func(heading, text string) { fmt.Fprintf(&b, "-- %s: %s\n%s\n\n", table, heading, text) }
				ddl, err := Schema(d.name, table)
				if err != nil {
					t.Fatal(err)
				}
				write("schema", strings.TrimSpace(ddl))
				p := d.prepare(table)
				for _, wait := range []time.Duration{0, time.Millisecond, DefaultWait, time.Hour} {
					claim, args := p.waiting(&p.statements, wait)
					write(fmt.Sprintf("claim that waits %s, further arguments %q", wait, args), claim)
				}
				for name, text := range texts(p.statements) {
					if name != "claim" {
						write(name, text)
					}
				}
			}
			mustBeGolden(t, string(d.name)+".golden", b.String())
		})
	}
}

func TestConversionsAreFrozen(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, table := range []string{"", "shop.inbox"} {
		for _, c := range [][2]Dialect{{Postgres, PostgresRotating}, {PostgresRotating, Postgres}} {
			text, err := Conversion(c[0], c[1], table)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(text, "{}") {
				t.Errorf("a placeholder is left in %s", text)
			}
			b.WriteString(text + "\n")
		}
	}
	mustBeGolden(t, "conversion.golden", b.String())
}

// A name that PostgreSQL would cut could be another one then.
func TestNamesOfTwoGenerationsFit(t *testing.T) {
	t.Parallel()
	table := strings.Repeat("t", 50)
	texts := make([]string, 0, 4)
	for _, d := range []Dialect{Postgres, PostgresRotating} {
		ddl, err := Schema(d, table)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, ddl)
	}
	for _, c := range [][2]Dialect{{Postgres, PostgresRotating}, {PostgresRotating, Postgres}} {
		text, err := Conversion(c[0], c[1], table)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	texts = append(texts, postgresRotating().prepare(table).rotate)
	for _, text := range texts {
		for i, name := range strings.Split(text, `"`) {
			if i%2 == 1 && len(name) > 63 {
				t.Errorf("%s has %d bytes, PostgreSQL takes 63", name, len(name))
			}
		}
	}
}

func TestTwoGenerationsBeginAtReadCommitted(t *testing.T) {
	t.Parallel()
	for _, given := range []*sql.TxOptions{nil, {}, {Isolation: sql.LevelReadCommitted}} {
		s, err := New(unopened(t), &Config{Dialect: PostgresRotating, TxOptions: given})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.newDelivery(t.Context(), inbox.Delivery{}).options; got == nil || got.Isolation != sql.LevelReadCommitted {
			t.Errorf("given %v, a delivery begins with %v", given, got)
		}
		if s.dialect.sweepOptions.Isolation != sql.LevelReadCommitted {
			t.Error("a rotation does not")
		}
	}
}

func TestNoPlaceholderIsLeftInAStatement(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		for name, text := range texts(d.prepare("shop.inbox").statements) {
			if d.name == MySQL && name == "claim" {
				continue // the form that the claims by seconds are made of
			}
			if strings.ContainsAny(text, "{}") {
				t.Errorf("%s of %s: %s", name, d.name, text)
			}
		}
	}
}

func TestPrepareLeavesTheDialectAsItIs(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		before := d.claim
		if p := d.prepare("orders_inbox"); p.claim == before || d.claim != before {
			t.Errorf("%s: the claim of the dialect is now %s", d.name, d.claim)
		}
	}
}

// texts yields the statements by name, in their order.
func texts(s statements) func(yield func(name, text string) bool) {
	return func(yield func(name, text string) bool) {
		v := reflect.ValueOf(s)
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String && f.String() != "" && !yield(v.Type().Field(i).Name, f.String()) {
				return
			}
		}
	}
}

func mustBeGolden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(file) //nolint:gosec // a file of the tests
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := append(strings.Split(got, "\n"), "(end)"), append(strings.Split(string(b), "\n"), "(end)")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s differs from line %d on: got\n%s\nwant\n%s\nIf that is meant, run go test with -update and say so in the changelog.", file, i+1, gotLines[i], wantLines[i])
		}
	}
}
