package integration_test

import (
	"database/sql"
	"testing"

	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	"github.com/watermill-inbox/inbox/internal/sqltest"
)

// open opens a pool that the test closes.
func open(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	return closing(tb, db)
}

// closing closes db when the test ends.
func closing(tb testing.TB, db *sql.DB) *sql.DB {
	tb.Helper()
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("close the pool: %v", err)
		}
	})
	return db
}

// reach finds a database, or skips the test.
type reach func(t *testing.T) sqltest.Database

func throughPgx(t *testing.T) sqltest.Database {
	t.Helper()
	return postgres(t, "pgx", nil)
}

func throughPq(t *testing.T) sqltest.Database {
	t.Helper()
	return postgres(t, "postgres", nil)
}

func rotatingThroughPgx(t *testing.T) sqltest.Database {
	t.Helper()
	return rotating(postgres(t, "pgx", nil))
}

func rotatingThroughPq(t *testing.T) sqltest.Database {
	t.Helper()
	return rotating(postgres(t, "postgres", nil))
}

func onMariaDB(t *testing.T) sqltest.Database {
	t.Helper()
	return mariadb(t, nil)
}

func onSQLite(*testing.T) sqltest.Database { return sqlitetest.File("") }
