package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/retention"
)

// keep is an inbox table whose keys grow old at a test's word.
type keep struct {
	dialect inboxsql.Dialect
	table   string
	open    func() *sql.DB
	db      *sql.DB
}

func newKeep(t *testing.T, database reach) *keep {
	t.Helper()
	place := database(t)
	k := &keep{dialect: place.Dialect, table: someTable(), open: place.Place(t)}
	k.db = k.open()
	if err := k.store(nil).CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	drop(t, k.db, "TABLE "+k.table)
	return k
}

// store is another one on the table.
func (k *keep) store(cfg *inboxsql.Config) *inboxsql.Store {
	var c inboxsql.Config
	if cfg != nil {
		c = *cfg
	}
	c.Dialect, c.Table = k.dialect, k.table
	return inboxsql.MustNew(k.open(), &c)
}

// fill adds so many keys of a consumer that were received so long ago, one after
// the other within an hour.
func (k *keep) fill(t *testing.T, consumer string, n int, ago time.Duration) {
	t.Helper()
	statement := map[inboxsql.Dialect]string{
		inboxsql.Postgres: `INSERT INTO %s (consumer, source, message_id, received_at, processed_at)
			SELECT $1, 'fill', $2::bigint || '-' || n, now() - $2::bigint * interval '1 second' + n * interval '1 hour' / $3::float8, now() FROM generate_series(0, $4::int) n`,
		inboxsql.MySQL: `INSERT INTO %s (consumer, source, message_id, received_at, processed_at)
			WITH RECURSIVE s AS (SELECT ? AS consumer, ? AS ago, ? AS n UNION ALL SELECT consumer, ago, n FROM s WHERE FALSE)
			SELECT s.consumer, 'fill', CONCAT(s.ago, '-', q.seq), UTC_TIMESTAMP(6) - INTERVAL s.ago SECOND + INTERVAL (q.seq * 3600000000 DIV s.n) MICROSECOND, UTC_TIMESTAMP(6)
			FROM s, seq_0_to_1000000 q WHERE q.seq <= ?`,
		inboxsql.SQLite: `INSERT INTO %s (consumer, source, message_id, received_at, processed_at)
			WITH RECURSIVE s(consumer, ago, n, i) AS (SELECT ?, ?, ?, 0 UNION ALL SELECT consumer, ago, n, i + 1 FROM s WHERE i < ?)
			SELECT consumer, 'fill', ago || '-' || i, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', (i * 3600.0 / n - ago) || ' seconds'), strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') FROM s`,
	}[k.dialect]
	k.exec(t, fmt.Sprintf(statement, k.table), consumer, int64(ago/time.Second), n, n-1)
}

func (k *keep) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	for {
		_, err := k.db.ExecContext(t.Context(), statement, args...)
		if k.dialect == inboxsql.SQLite && err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") && t.Context().Err() == nil {
			continue // it has waited for the other writer as long as it may
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		return
	}
}

// keys counts those of handlers.
func (k *keep) keys(t *testing.T) (n int) {
	t.Helper()
	if err := k.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+k.table+" WHERE consumer <> ''").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// expireLease makes the lease of the sweeper as old as if it had died.
func (k *keep) expireLease(t *testing.T) {
	t.Helper()
	k.exec(t, map[inboxsql.Dialect]string{
		inboxsql.Postgres: "UPDATE " + k.table + " SET processed_at = now() - interval '31 seconds' WHERE consumer = ''",
		inboxsql.MySQL:    "UPDATE " + k.table + " SET processed_at = UTC_TIMESTAMP(6) - INTERVAL 31 SECOND WHERE consumer = ''",
		inboxsql.SQLite:   "UPDATE " + k.table + " SET processed_at = strftime('%Y-%m-%d %H:%M:%f', 'now', '-31 seconds') WHERE consumer = ''",
	}[k.dialect])
}

const day = 24 * time.Hour

func TestSweepOfEachService(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			for _, consumer := range []string{"invoices", "~/~odd", "~shop/invoices", "~shop2/invoices", "~sho/invoices"} {
				k.fill(t, consumer, 10, 8*day)
				k.fill(t, consumer, 10, 3*day)
			}
			sweep := func(cfg inboxsql.Config, all bool, want int) {
				t.Helper()
				k.exec(t, "DELETE FROM "+k.table+" WHERE consumer = ''")
				r, err := retention.MustNew(k.store(&cfg), &retention.Config{All: all, Batch: 7, Pause: -1}).Sweep(t.Context())
				if err != nil || r.Removed != want || !r.Done {
					t.Errorf("%+v: got %+v, error %v, want %d removed", cfg, r, err, want)
				}
			}
			sweep(inboxsql.Config{Namespace: "shop", Window: 2 * day}, false, 20)
			sweep(inboxsql.Config{Namespace: "shop2"}, false, 10)
			sweep(inboxsql.Config{}, false, 20)
			sweep(inboxsql.Config{Namespace: "other"}, false, 0)
			sweep(inboxsql.Config{Namespace: "other"}, true, 10)
			sweep(inboxsql.Config{Window: 2 * day}, true, 40)
			if n := k.keys(t); n != 0 {
				t.Errorf("%d keys are left", n)
			}
		})
	}
}

func TestSweepOfATable(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name+", without rows", func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			for range 2 {
				if r, err := retention.MustNew(k.store(nil), nil).Sweep(t.Context()); err != nil || r.Removed != 0 {
					t.Errorf("got %+v, error %v", r, err)
				}
				k.expireLease(t)
			}
		})
		t.Run(name+", that is missing", func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			s := inboxsql.MustNew(k.open(), &inboxsql.Config{Dialect: k.dialect, Table: "no_" + k.table})
			if _, err := retention.MustNew(s, nil).Sweep(t.Context()); !errors.Is(err, inbox.ErrNoTable) {
				t.Errorf("got %v", err)
			}
		})
		t.Run(name+", without its index", func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			if k.dialect == inboxsql.MySQL {
				k.exec(t, "DROP INDEX "+k.table+"_received_at ON "+k.table)
			} else {
				k.exec(t, "DROP INDEX "+k.table+"_received_at")
			}
			k.fill(t, "invoices", 500, 8*day)
			if r, err := retention.MustNew(k.store(nil), &retention.Config{Batch: 100, Pause: -1}).Sweep(t.Context()); err != nil || r.Removed != 500 {
				t.Errorf("got %+v, error %v", r, err)
			}
			findings, err := k.store(nil).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if strings.Contains(f.Problem, "received_at") {
					return
				}
			}
			t.Errorf("the check does not find that the index is missing: %v", findings)
		})
	}
}

// long says that there is time for what takes minutes.
func long() bool { return os.Getenv("INBOX_TEST_LONG") != "" }

// A table fills faster than statistics of it are made: the test does not wait for
// any.
func TestSweepOfManyRows(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]reach{"PostgreSQL": throughPgx, "MariaDB": onMariaDB, "SQLite": onSQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := 50_000
			if long() {
				rows = 1_000_000
			}
			k := newKeep(t, database)
			k.fill(t, "invoices", rows, 8*day)
			k.fill(t, "invoices", 100, day)
			r, err := retention.MustNew(k.store(nil), &retention.Config{Pause: -1}).Sweep(t.Context())
			if err != nil || r.Removed != rows || !r.Done {
				t.Errorf("got %+v, error %v", r, err)
			}
			if n := k.keys(t); n != 100 {
				t.Errorf("%d keys are left, want 100", n)
			}
			t.Logf("%d keys in %d batches and %s", r.Removed, r.Batches, r.Duration.Round(time.Millisecond))
		})
	}
}

// A batch that cannot go on ends with its context, and is undone.
func TestSweepIsCancelledInABatch(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			k.fill(t, "invoices", 100, 8*day)
			s := k.store(nil)
			b := inbox.Batch{Owner: "a", Limit: 10}
			if _, err := s.Sweep(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			other, err := k.open().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Rollback()
			hold := "UPDATE " + k.table + " SET outcome = 'held' WHERE consumer = ''" //nolint:gosec // our own name
			if _, err = other.ExecContext(t.Context(), hold); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			var swept inbox.Swept
			if swept, err = s.Sweep(ctx, b); err == nil {
				t.Errorf("got %+v, and no error", swept)
			}
			if err = other.Rollback(); err != nil {
				t.Fatal(err)
			}
			if n := k.keys(t); n != 90 {
				t.Errorf("%d keys are left, want 90", n)
			}
			// A connection that a query was cancelled on may be given up by the server later.
			for range 10 {
				if swept, err = s.Sweep(t.Context(), b); !errors.Is(err, inbox.ErrBusy) {
					break
				}
			}
			if err != nil || swept.Removed != 10 {
				t.Errorf("got %+v, error %v", swept, err)
			}
		})
	}
}

// The statements are those that the golden files of inboxsql freeze.
func TestSweepUsesTheIndex(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			k.fill(t, "invoices", 20_000, 6*day)
			k.fill(t, "invoices", 3000, 8*day)
			for _, analyzed := range []bool{false, true} {
				if analyzed {
					k.exec(t, map[inboxsql.Dialect]string{
						inboxsql.Postgres: "ANALYZE " + k.table, inboxsql.MySQL: "ANALYZE TABLE " + k.table, inboxsql.SQLite: "ANALYZE " + k.table,
					}[k.dialect])
				}
				for _, statement := range []string{"batch", "sweep"} {
					plan := k.explain(t, statement)
					if !strings.Contains(plan, k.table+"_received_at") || strings.Contains(plan, "Sort") || strings.Contains(plan, "filesort") || strings.Contains(plan, "TEMP B-TREE") {
						t.Errorf("analyzed %t, %s: the index is not what orders the rows:\n%s", analyzed, statement, plan)
					}
				}
			}
		})
	}
}

// explain returns the plan of a statement of a sweep.
func (k *keep) explain(t *testing.T, statement string) string {
	t.Helper()
	tx, err := k.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	text := k.frozen(t, statement)
	week := 7 * day
	explain, args := "EXPLAIN ", []any{"0", week.Microseconds(), "\x01", "~", 1000}
	switch k.dialect {
	case inboxsql.MySQL:
		args[0], args[2], args[3] = "1000-01-01", []byte("\x01"), []byte("~")
	case inboxsql.SQLite:
		explain, args[1] = "EXPLAIN QUERY PLAN ", fmt.Sprintf("-%d seconds", week/time.Second)
	case inboxsql.PostgresRotating: // has no such statements
	case inboxsql.Postgres:
		if _, err = tx.ExecContext(t.Context(), k.frozen(t, "byIndex")); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := tx.QueryContext(t.Context(), explain+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		targets := make([]any, len(cells))
		for i := range cells {
			targets[i] = &cells[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			plan.WriteString(c.String + " ")
		}
		plan.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// frozen returns a statement of the store on this table.
func (k *keep) frozen(t *testing.T, statement string) string {
	t.Helper()
	golden, err := os.ReadFile("../../inboxsql/testdata/" + string(k.dialect) + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(golden), "-- inbox_messages: "+statement+"\n")
	if !ok {
		t.Fatalf("there is no %s in the golden file", statement)
	}
	text, _, _ = strings.Cut(text, "\n\n")
	return strings.ReplaceAll(text, "inbox_messages", k.table)
}
