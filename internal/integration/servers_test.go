package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "github.com/lib/pq"              // the driver "postgres"

	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	"github.com/watermill-inbox/inbox/internal/sqltest"
)

// server is a database server that may be there or not.
type server struct {
	name, env, usual string
	driver           string

	once sync.Once
	err  error
}

//nolint:gochecknoglobals // each is asked once whether it is there
var (
	postgresServer = &server{
		name: "PostgreSQL", env: "INBOX_TEST_POSTGRES_DSN", driver: "pgx",
		usual: "postgres://postgres@127.0.0.1:5432/test?sslmode=disable",
	}
	mysqlServer = &server{
		name: "MariaDB", env: "INBOX_TEST_MYSQL_DSN", driver: "mysql",
		usual: "root@tcp(127.0.0.1:3306)/test",
	}
)

func (s *server) dsn() string {
	if dsn := os.Getenv(s.env); dsn != "" {
		return dsn
	}
	return s.usual
}

// missing returns why the server cannot be reached, nil if it can.
func (s *server) missing() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		db, err := sql.Open(s.driver, s.dsn())
		if err != nil {
			s.err = err
			return
		}
		s.err = errors.Join(db.PingContext(ctx), db.Close())
	})
	return s.err
}

// need skips the test if the server is not there, or fails it if all are required.
func (s *server) need(t *testing.T) {
	t.Helper()
	err := s.missing()
	switch {
	case err == nil:
	case os.Getenv("INBOX_TEST_REQUIRE") == "all":
		t.Fatalf("%s is required (INBOX_TEST_REQUIRE=all) and cannot be reached: %v", s.name, err)
	default:
		t.Skipf("%s cannot be reached (%s): %v", s.name, s.env, err)
	}
}

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
