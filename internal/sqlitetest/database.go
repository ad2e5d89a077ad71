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

// hooks are functions of tests that SQL can call by name, as inbox_hook(name).
var hooks sync.Map //nolint:gochecknoglobals // functions of the driver are global

// registerHook must have run before a connection is opened that has to know it.
var registerHook = sync.OnceFunc(func() { //nolint:gochecknoglobals // functions of the driver are global
	sqlite.MustRegisterScalarFunction("inbox_hook", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		hook, ok := hooks.Load(args[0])
		if !ok {
			return nil, fmt.Errorf("no hook %v", args[0])
		}
		return hook.(func() bool)(), nil //nolint:errcheck,forcetypeassert // nothing else is stored
	})
})

// swallow has a trigger ask Go whether to swallow the row: what a trigger counted
// in a table would be rolled back with the claim.
func swallow(tables *sqltest.Tables, inserts int) {
	var left atomic.Int64
	left.Store(int64(inserts))
	hooks.Store(tables.Inbox, func() bool {
		if left.Load() == 0 {
			return false
		}
		left.Add(-1)
		return true
	})
	tables.Exec(fmt.Sprintf(`CREATE TRIGGER %[1]s_swallow BEFORE INSERT ON %[1]s
		WHEN inbox_hook('%[1]s') BEGIN SELECT RAISE(IGNORE); END`, tables.Inbox))
}

// interrupt cancels a write in its midst, which rolls the transaction back.
func interrupt(ctx context.Context, tables *sqltest.Tables) error {
	tx, err := inboxsql.StdTx(ctx)
	if err != nil {
		return err
	}
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	hooks.Store(tables.EffectsTable(), func() bool {
		cancel()
		return true
	})
	return sqltest.MustFail(tx.ExecContext(short, fmt.Sprintf(`INSERT INTO %[1]s
		WITH RECURSIVE n(i) AS (SELECT inbox_hook('%[1]s') UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
		SELECT i FROM n`, tables.EffectsTable())))
}

func ends(tables *sqltest.Tables) map[string]testutil.End {
	return map[string]testutil.End{
		"an interrupted write": {Do: func(ctx context.Context) error { return interrupt(ctx, tables) }},
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
