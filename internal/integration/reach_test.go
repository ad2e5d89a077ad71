package integration_test

import (
	"database/sql"
	"testing"

	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	"github.com/watermill-inbox/inbox/internal/sqltest"
)

// open opens a pool that the test closes.
func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, db)
}

// closing closes db when the test ends.
func closing(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the pool: %v", err)
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
