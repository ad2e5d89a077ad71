package sqlitetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqltest"
	"github.com/watermill-inbox/inbox/testutil"
)

// File is SQLite in a file, opened with the query of a DSN; "" means [WAL].
func File(query string) sqltest.Database {
	d := database()
	d.Place = func(t *testing.T) func() *sql.DB {
		t.Helper()
		file := filepath.Join(t.TempDir(), "test.db")
		return func() *sql.DB { return OpenFile(t, file, query) }
	}
	d.Lacks = map[testutil.Ability]string{
		testutil.CanTellInFlight: "SQLite knows only that another writer is busy",
		testutil.CanOverlap:      "SQLite has one writer at a time",
		testutil.CanPoison:       "SQLite commits what a failed statement left",
	}
	return d
}

// Memory is SQLite in memory: one connection is all there is.
func Memory() sqltest.Database {
	d := database()
	d.Place = func(t *testing.T) func() *sql.DB {
		t.Helper()
		db := OpenMemory(t)
		return func() *sql.DB { return db }
	}
	d.Lacks = map[testutil.Ability]string{
		testutil.CanBound:        "a pool of one waits for the connection",
		testutil.CanTellInFlight: "SQLite knows only that another writer is busy",
		testutil.CanOverlap:      "SQLite has one writer at a time",
		testutil.CanPoison:       "SQLite commits what a failed statement left",
	}
	return d
}

func database() sqltest.Database {
	return sqltest.Database{Dialect: inboxsql.SQLite, Swallow: swallow, Ends: ends}
}

// swallow has a trigger ask Go whether to swallow the row: what a trigger counted
// in a table would be rolled back with the claim.
func swallow(tables *sqltest.Tables, inserts int) {
	left := &atomic.Int64{}
	left.Store(int64(inserts))
	swallowing.Store(tables.Inbox, left)
	tables.Exec(fmt.Sprintf(`CREATE TRIGGER %[1]s_swallow BEFORE INSERT ON %[1]s
		WHEN inbox_swallows('%[1]s') BEGIN SELECT RAISE(IGNORE); END`, tables.Inbox))
}

// swallowing has the inserts that are left, an [atomic.Int64], by table.
var swallowing sync.Map //nolint:gochecknoglobals // functions of the driver are global

// registerSwallow must have run before a connection is opened that has to know
// the function.
var registerSwallow = sync.OnceFunc(func() { //nolint:gochecknoglobals // functions of the driver are global
	sqlite.MustRegisterScalarFunction("inbox_swallows", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		left, ok := swallowing.Load(args[0])
		if !ok {
			return int64(0), nil
		}
		n := left.(*atomic.Int64) //nolint:errcheck,forcetypeassert // nothing else is stored
		if n.Load() == 0 {
			return int64(0), nil
		}
		n.Add(-1)
		return int64(1), nil
	})
})

func ends(tables *sqltest.Tables) map[string]testutil.End {
	return map[string]testutil.End{
		"an interrupted write": {Do: func(ctx context.Context) error {
			tx, err := inboxsql.StdTx(ctx)
			if err != nil {
				return err
			}
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			return sqltest.MustFail(tx.ExecContext(short, `INSERT INTO `+tables.EffectsTable()+`
				WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT i FROM n`))
		}},
		"INSERT OR ROLLBACK": {Do: func(ctx context.Context) error {
			return sqltest.MustFail(exec(ctx, `INSERT OR ROLLBACK INTO `+tables.UniqueTable()+` (id) VALUES ('taken')`))
		}},
		"COMMIT as a statement": {Commits: true, Do: func(ctx context.Context) error {
			_, err := exec(ctx, "COMMIT")
			return err
		}},
		"ROLLBACK as a statement": {Do: func(ctx context.Context) error {
			_, err := exec(ctx, "ROLLBACK")
			return err
		}},
	}
}

func exec(ctx context.Context, statement string) (sql.Result, error) {
	tx, err := inboxsql.StdTx(ctx)
	if err != nil {
		return nil, err
	}
	return tx.ExecContext(ctx, statement)
}
