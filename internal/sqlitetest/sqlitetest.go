// Package sqlitetest opens SQLite databases for tests. It is the only package of
// the root module that imports a driver.
package sqlitetest

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// WAL is the query of a DSN for a database as it should be used, readers beside a
// writer and transactions that take the write lock at once, but for two things:
// commits do not wait for the disk, as no test pulls the plug, and the driver waits
// a moment only, so that the store's own bound is what counts.
const WAL = "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout(100)&_txlock=immediate"

// Open opens a database in a file of the test's own, with the query of the DSN;
// "" means [WAL]. It is closed when the test ends.
func Open(tb testing.TB, query string) *sql.DB {
	tb.Helper()
	return OpenFile(tb, filepath.Join(tb.TempDir(), "test.db"), query)
}

// OpenFile is [Open] with a file that others open too.
func OpenFile(tb testing.TB, file, query string) *sql.DB {
	tb.Helper()
	if query == "" {
		query = WAL
	}
	registerHook()
	db, err := sql.Open("sqlite", "file:"+file+query)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("close the database: %v", err)
		}
	})
	return db
}

// OpenMemory opens a database in memory, on a pool of one connection: another
// connection would have another database.
func OpenMemory(tb testing.TB) *sql.DB {
	tb.Helper()
	db := OpenFile(tb, ":memory:", "?_pragma=busy_timeout(100)")
	db.SetMaxOpenConns(1)
	return db
}
