package inboxsql

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
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
