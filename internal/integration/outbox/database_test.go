package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

// patience is how long anything may take that a test waits for. Other tests may
// hold transactions open meanwhile, behind which watermill-sql waits.
const patience = 90 * time.Second

// server is where the tests have their tables.
type server struct {
	*servers.Server
	driver  string
	dialect inboxsql.Dialect
}

//nolint:gochecknoglobals // constants
var (
	postgresServer = &server{Server: servers.Postgres, driver: "pgx", dialect: inboxsql.Postgres}
	mariadbServer  = &server{Server: servers.MariaDB, driver: "mysql", dialect: inboxsql.MySQL}
)

// database is a server as one test uses it.
type database struct {
	*sql.DB
	server *server
	suffix string // of the names of all tables and topics of the test
}

// open opens a pool that the test closes. param is added to the DSN.
func (s *server) open(t *testing.T, driver, param string) *database {
	t.Helper()
	s.Need(t)
	dsn := s.Address()
	if param != "" {
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		dsn += separator + param
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(20)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the pool: %v", err)
		}
	})
	return &database{DB: db, server: s, suffix: fmt.Sprintf("_%08x", rand.Uint32())} //nolint:gosec // a name, not a secret
}

func (d *database) exec(t *testing.T, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := d.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// count returns how often each value occurs in the first column of a query.
func (d *database) count(t *testing.T, query string) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rows, err := d.QueryContext(ctx, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	counts := map[string]int{}
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		counts[value]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// quoted quotes a name of a table.
func (d *database) quoted(name string) string {
	if d.server.dialect == inboxsql.MySQL {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

// store makes an inbox table and a table of effects, which has no constraint that
// would hide an effect that happens twice.
func (d *database) store(t *testing.T, name string) (store *inboxsql.Store, effects string) {
	t.Helper()
	store = inboxsql.MustNew(d.DB, &inboxsql.Config{Dialect: d.server.dialect, Table: "inbox_" + name + d.suffix})
	effects = "effects_" + name + d.suffix
	d.drop(t, "inbox_"+name+d.suffix, effects)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := store.CreateTable(ctx); err != nil {
		t.Fatal(err)
	}
	d.exec(t, "CREATE TABLE "+effects+" (id VARCHAR(255) NOT NULL)")
	return store, effects
}

// drop drops tables after the test.
func (d *database) drop(t *testing.T, tables ...string) {
	t.Helper()
	t.Cleanup(func() {
		for _, name := range tables {
			d.exec(t, "DROP TABLE IF EXISTS "+d.quoted(name))
		}
	})
}
