package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

// ownPostgres makes a database of the test's own, and returns its DSN.
func ownPostgres(tb testing.TB) string {
	tb.Helper()
	servers.Postgres.Need(tb)
	u, err := url.Parse(servers.Postgres.Address())
	if err != nil {
		tb.Fatalf("%s must be a URL: %v", servers.Postgres.Env, err)
	}
	u.Path = "/" + ownDatabase(tb, "pgx", servers.Postgres.Address())
	return u.String()
}

// ownMariaDB is [ownPostgres] for MariaDB.
func ownMariaDB(tb testing.TB) string {
	tb.Helper()
	servers.MariaDB.Need(tb)
	c, err := mysql.ParseDSN(servers.MariaDB.Address())
	if err != nil {
		tb.Fatalf("%s: %v", servers.MariaDB.Env, err)
	}
	c.DBName = ownDatabase(tb, "mysql", servers.MariaDB.Address())
	return c.FormatDSN()
}

func ownDatabase(tb testing.TB, driver, address string) string {
	tb.Helper()
	name := fmt.Sprintf("inbox_%012x", rand.Uint64()>>16) //nolint:gosec // a name, not a secret
	admin := open(tb, driver, address)
	if _, err := admin.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE "+name); err != nil {
			tb.Error(err)
		}
	})
	return name
}
