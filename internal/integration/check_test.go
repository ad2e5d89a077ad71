package integration_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
	"github.com/watermill-inbox/inbox/testutil"
)

// TestCheckAtomicOn plants what only a database with several writers lets a handler do.
func TestCheckAtomicOn(t *testing.T) {
	t.Parallel()
	type plant struct {
		set  []string                                    // statements before
		do   func(ctx context.Context, db *sql.DB) error // past the transaction, while the handler runs
		says []string                                    // of the one report; none: there is none
		more bool                                        // and of another one, by chance
		wait time.Duration                               // for the handler; 0: as long as a loaded machine may need
	}
	past := func(statements ...string) func(context.Context, *sql.DB) error {
		return func(ctx context.Context, db *sql.DB) error {
			for _, statement := range statements {
				if _, err := db.ExecContext(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		}
	}
	inside := func(statements ...string) func(context.Context, *sql.DB) error {
		return func(ctx context.Context, _ *sql.DB) error {
			for _, statement := range statements {
				if _, err := exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		}
	}
	both := map[string]plant{
		"nothing": {},
		"an update": {
			do:   past("UPDATE stock SET n = n - 1 WHERE item = 'pen'"),
			says: []string{"stock has changed:\n  - item=\"pen\", n=5\n  + item=\"pen\", n=4\nThe transaction was rolled back"},
		},
		"a row in a table without a key": {
			set:  []string{"CREATE TABLE notes (text VARCHAR(20))", "INSERT INTO notes VALUES ('a'), ('a'), (NULL)"},
			do:   past("INSERT INTO notes VALUES ('a')"),
			says: []string{"notes has changed:\n  + text=\"a\"\n"},
		},
		"many rows": {
			do:   past("INSERT INTO notes SELECT CONCAT(a.item, b.item, c.item, d.item) FROM stock a, stock b, stock c, stock d"),
			set:  []string{"CREATE TABLE notes (text VARCHAR(20))"},
			says: []string{"notes has changed:", "and 6 more"},
		},
		"a handler that waits for the row that its own transaction has": {
			do: func(ctx context.Context, db *sql.DB) error {
				return errors.Join(inside("UPDATE stock SET n = 0")(ctx, db), past("UPDATE stock SET n = 0")(ctx, db))
			},
			says: []string{"did not return within 2s", "inboxsql.Tx"},
			more: true, // the rollback may let the other statement through before it is cancelled
			wait: 2 * time.Second,
		},
	}
	onPostgres := map[string]plant{
		"a sequence alone":                       {set: []string{"CREATE TABLE counted (id serial, v int)"}, do: inside("INSERT INTO counted (v) VALUES (1)")},
		"a partition":                            {set: []string{"CREATE TABLE parts (id int) PARTITION BY RANGE (id)", "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)"}, do: past("INSERT INTO parts VALUES (1)"), says: []string{"table public.parts_1 has changed:\n  + id=1\n"}},
		"a table of another schema":              {set: []string{"CREATE SCHEMA shop", `CREATE TABLE shop."Odd ""name" (v json, w jsonb, x float8[], g int GENERATED ALWAYS AS (1) STORED)`}, do: past(`INSERT INTO shop."Odd ""name" VALUES ('{"a":1}', '[]', '{1.5}')`), says: []string{`table shop.Odd "name has changed:`, "g=1"}},
		"a materialized view, a temporary table": {set: []string{"CREATE MATERIALIZED VIEW few AS SELECT * FROM stock"}, do: past("CREATE TEMPORARY TABLE passing (id int)", "REFRESH MATERIALIZED VIEW few")},
		"a table":                                {do: past("CREATE TABLE late (id int)"), says: []string{"table public.late was created"}},
	}
	onMaria := map[string]plant{
		"AUTO_INCREMENT alone": {set: []string{"CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, v INT)"}, do: inside("INSERT INTO counted (v) VALUES (1)")},
		"DDL in the transaction, which commits it": {
			do:   inside("UPDATE stock SET n = 4 WHERE item = 'pen'", "DROP TABLE IF EXISTS none"),
			says: []string{"stock has changed:\n  - item=\"pen\", n=5\n  + item=\"pen\", n=4\n", "DDL"},
		},
		"a table with an odd name": {set: []string{"CREATE TABLE `Odd ``name` (v JSON)"}, do: past("INSERT INTO `Odd ``name` VALUES ('{}')"), says: []string{"Odd `name has changed:\n  + v=\"{}\""}},
	}
	for name, c := range map[string]struct {
		driver string
		dsn    func(tb testing.TB) string
		plants []map[string]plant
	}{
		"PostgreSQL through pgx": {"pgx", ownPostgres, []map[string]plant{both, onPostgres}},
		"PostgreSQL through pq":  {"postgres", ownPostgres, []map[string]plant{both, onPostgres}},
		"MariaDB":                {"mysql", ownMariaDB, []map[string]plant{both, onMaria}},
	} {
		for _, plants := range c.plants {
			for planted, p := range plants {
				t.Run(name+", "+planted, func(t *testing.T) {
					t.Parallel()
					db := open(t, c.driver, c.dsn(t))
					check := testutil.Check{DB: db, Store: stocked(t, db, p.set...), Timeout: cmp.Or(p.wait, time.Minute)}
					check.Handler = func(msg *message.Message) ([]*message.Message, error) {
						if p.do == nil {
							_, err := exec(msg.Context(), "UPDATE stock SET n = n - 1")
							return nil, err
						}
						return nil, p.do(msg.Context(), db)
					}
					reports := reported(t, func(tb testing.TB) {
						tb.Helper()
						testutil.CheckAtomic(tb, check, message.NewMessage("o1", nil))
					})
					if want := min(len(p.says), 1); len(reports) != want && (!p.more || len(reports) != want+1) {
						t.Fatalf("reported is %q, want %d reports", reports, want)
					}
					for _, text := range p.says {
						if !strings.Contains(reports[0], text) {
							t.Errorf("reported is\n%s\nwhich does not say\n%s", reports[0], text)
						}
					}
				})
			}
		}
	}
}

// TestGuideToTesting runs the handler of docs/testing.md, and finds what it shows.
func TestGuideToTesting(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, "pgx", ownPostgres(t))
	store := stocked(t, db)
	handler := inboxmw.TxHandler(func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
		if _, err := tx.ExecContext(ctx, `INSERT INTO invoices (order_id) VALUES ($1)`, msg.UUID); err != nil {
			return nil, err
		}
		_, err := db.ExecContext(ctx, `UPDATE stock SET n = n - 1 WHERE item = 'pen'`)
		return nil, err
	})
	reports := reported(t, func(tb testing.TB) {
		tb.Helper()
		testutil.CheckAtomic(tb, testutil.Check{DB: db, Store: store, Handler: handler}, message.NewMessage("order-1", nil))
	})
	if len(reports) != 1 || !strings.Contains(string(guide), "\n"+indented(reports[0])+"\n") {
		t.Errorf("the guide does not show\n%s", indented(strings.Join(reports, "\n")))
	}
	testutil.CheckOnce(t, testutil.Check{DB: db, Store: store, Handler: handler}, message.NewMessage("order-2", nil))
}

// indented is a report as go test shows it, for a test in shop_test.go.
func indented(report string) string {
	return "    shop_test.go:12: " + strings.ReplaceAll(report, "\n", "\n        ")
}

// stocked makes the tables of a shop, and a store beside them.
func stocked(t *testing.T, db *sql.DB, statements ...string) inbox.Store {
	t.Helper()
	store := inboxsql.MustNew(db, nil)
	if err := store.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range append([]string{
		"CREATE TABLE stock (item VARCHAR(50) PRIMARY KEY, n INT)",
		"INSERT INTO stock VALUES ('pen', 5), ('ink', 7)",
		"CREATE TABLE invoices (order_id VARCHAR(50))",
	}, statements...) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return store
}

// reports is a [testing.TB] that keeps what is reported.
type reports struct {
	testing.TB
	mu  sync.Mutex
	all []string
}

// reported returns what check reports.
func reported(t *testing.T, check func(tb testing.TB)) []string {
	t.Helper()
	r := &reports{TB: t}
	ended := make(chan struct{})
	go func() { // FailNow ends its goroutine
		defer close(ended)
		check(r)
	}()
	<-ended
	return r.all
}

func (r *reports) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf(format, args...))
}

func (r *reports) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *reports) Fatal(args ...any) {
	r.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *reports) FailNow() { runtime.Goexit() }
