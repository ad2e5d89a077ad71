package integration_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
)

func (p *pair) conversion(from, to inboxsql.Dialect) string {
	p.t.Helper()
	text, err := inboxsql.Conversion(from, to, p.table)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func (p *pair) plain() *inboxsql.Store {
	p.t.Helper()
	return p.store(nil, func(c *inboxsql.Config) { c.Dialect = inboxsql.Postgres })
}

// mustNotServe wants s to process nothing, and to say what to do.
func (p *pair) mustNotServe(s *inboxsql.Store, from, to inboxsql.Dialect) {
	p.t.Helper()
	call := `inboxsql.Conversion("` + string(from) + `", "` + string(to) + `", "` + p.table + `")`
	for range 2 {
		if _, err := p.process(p.t.Context(), s, "nothing"); !errors.Is(err, inbox.ErrNoTable) || !strings.Contains(err.Error(), call) {
			p.t.Fatalf("got %v, want %q that names %s", err, inbox.ErrNoTable, call)
		}
	}
	findings, err := s.Check(p.t.Context())
	if err != nil || len(findings) == 0 || !findings[0].Fatal || !strings.Contains(findings[0].Problem, call) || !strings.Contains(findings[0].Remedy, p.conversion(from, to)) {
		p.t.Errorf("the check found %v, error %v", findings, err)
	}
	if err := s.CreateTable(p.t.Context()); !errors.Is(err, inbox.ErrNoTable) || !strings.Contains(err.Error(), call) {
		p.t.Errorf("the tables were created beside the others: %v", err)
	}
}

// TestConversion converts there and back while both kinds of store deliver: each
// message of a store that refuses is delivered again to one of the other kind, as
// after a deploy.
func TestConversion(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	plain, rotating := p.plain(), p.store(nil)
	if err := plain.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.mustProcess(plain, "before", false)
	if _, err := plain.Sweep(t.Context(), someBatch()); err != nil { // leaves its lease in the table
		t.Fatal(err)
	}
	p.mustNotServe(rotating, inboxsql.Postgres, inboxsql.PostgresRotating)

	const workers, keys = 8, 150
	steps := []string{
		p.conversion(inboxsql.Postgres, inboxsql.PostgresRotating),
		p.conversion(inboxsql.PostgresRotating, inboxsql.Postgres),
		p.conversion(inboxsql.Postgres, inboxsql.PostgresRotating),
	}
	var wg, halfway sync.WaitGroup
	halfway.Add(workers)
	var mu sync.Mutex
	refused := 0
	for w := range workers {
		stores := []*inboxsql.Store{p.plain(), p.store(nil)}
		wg.Go(func() {
			at := 0
			for key := range keys {
				id := strconv.Itoa(w/2*keys + key) // two workers have the same keys
				for {
					_, err := p.process(t.Context(), stores[at], id)
					if err == nil {
						break
					}
					if !errors.Is(err, inbox.ErrNoTable) {
						t.Errorf("delivery %s: %v", id, err)
						break
					}
					at = 1 - at
					mu.Lock()
					refused++
					mu.Unlock()
				}
				if key == keys/4 {
					halfway.Done()
				}
			}
		})
	}
	halfway.Wait()
	for i, text := range steps {
		if _, err := p.db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	wg.Wait()
	if refused == 0 {
		t.Error("no delivery met a conversion")
	}
	p.mustNotServe(plain, inboxsql.PostgresRotating, inboxsql.Postgres)
	mustKnowAll := func(s *inboxsql.Store) {
		t.Helper()
		for i := range workers / 2 * keys {
			p.mustProcess(s, strconv.Itoa(i), true)
		}
		p.mustProcess(s, "before", true)
		if n := query[int](p, "SELECT count(DISTINCT id) FROM "+p.table+"_effects"); n != workers/2*keys+1 || p.count("_effects") != n {
			t.Errorf("%d effects of %d messages, want one of each of %d", p.count("_effects"), n, workers/2*keys+1)
		}
	}
	mustKnowAll(rotating)

	// The names are those of inboxsql.Schema, whatever rotated in between.
	mustBeAsCreated := func(s *inboxsql.Store) {
		t.Helper()
		indexes := "SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE starts_with(tablename, $1)"
		before := query[string](p, indexes, p.table)
		if err := s.CreateTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := query[string](p, indexes, p.table); after != before {
			t.Errorf("the statements of the schema made of the indexes %s these: %s", before, after)
		}
		if findings, err := s.Check(t.Context()); err != nil || len(findings) != 0 {
			t.Errorf("the check found %v, error %v", findings, err)
		}
	}
	mustBeAsCreated(rotating)
	p.unvacuumed()
	p.age("_previous", over+time.Second)
	p.mustProcess(rotating, "young", false)
	p.mustRotate(rotating)
	p.mustProcess(rotating, "younger", false)
	mustBeAsCreated(rotating)
	p.exec(steps[1])
	mustBeAsCreated(plain)
	p.mustProcess(plain, "young", true)
	p.mustProcess(plain, "younger", true)
	p.mustNotServe(rotating, inboxsql.Postgres, inboxsql.PostgresRotating)
	p.exec(steps[0])
	mustBeAsCreated(rotating)
	p.mustProcess(rotating, "young", true)
}

// Tables that were created beside the one that has the keys would let each message
// be processed again.
func TestTablesOfBothDialects(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	plain, rotating := p.plain(), p.store(nil)
	if err := plain.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.mustProcess(plain, "1", false)
	ddl, err := inboxsql.Schema(inboxsql.PostgresRotating, p.table)
	if err != nil {
		t.Fatal(err)
	}
	p.exec(ddl)
	p.mustNotServe(rotating, inboxsql.Postgres, inboxsql.PostgresRotating)
	p.mustProcess(plain, "1", true) // goes on
	p.mustProcess(p.plain(), "1", true)
	p.exec("DROP TABLE " + p.table + "_current, " + p.table + "_previous")
	p.exec(p.conversion(inboxsql.Postgres, inboxsql.PostgresRotating))
	p.mustProcess(rotating, "1", true)

	// A view over both, for people who read them, is no table.
	p.exec("CREATE VIEW " + p.table + " AS SELECT * FROM " + p.table + "_current UNION ALL SELECT * FROM " + p.table + "_previous")
	p.mustProcess(p.store(nil), "1", true)
	p.exec("DROP VIEW " + p.table)
}

func TestConversionInSchema(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	schema := p.table + "_schema"
	p.exec("CREATE SCHEMA " + schema)
	drop(t, p.db, "SCHEMA "+schema+" CASCADE")
	in := func(c *inboxsql.Config) { c.Table = schema + ".Inbox" }
	plain := p.store(nil, in, func(c *inboxsql.Config) { c.Dialect = inboxsql.Postgres })
	rotating := p.store(nil, in)
	if err := plain.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.mustProcess(plain, "1", false)
	for _, s := range []*inboxsql.Store{rotating, plain, rotating} {
		from, to := inboxsql.Postgres, inboxsql.PostgresRotating
		if s == plain {
			from, to = to, from
		}
		text, err := inboxsql.Conversion(from, to, schema+".Inbox")
		if err != nil {
			t.Fatal(err)
		}
		p.exec(text)
		p.mustProcess(s, "1", true)
		if swept, err := s.Sweep(t.Context(), someBatch()); err != nil {
			t.Errorf("got %+v, error %v", swept, err)
		}
		if err := s.CreateTable(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := query[int](p, "SELECT count(*) FROM pg_indexes WHERE schemaname = $1", schema); n != 4 {
		t.Errorf("got %d indexes, want 4", n)
	}
}
