package crash_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

// database is where a worker finds its database.
type database struct {
	Dialect inboxsql.Dialect
	Address string
	Inbox   string
	Effects string
}

// open opens a pool; with a life, its connections die with it.
func (d database) open(l *life) (*sql.DB, error) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		opened, err := dialer.DialContext(ctx, network, address)
		if err != nil || l == nil {
			return opened, err
		}
		return wire{opened, l}, nil
	}
	var under driver.Connector
	switch d.Dialect {
	case inboxsql.Postgres:
		config, err := pgx.ParseConfig(d.Address)
		if err != nil {
			return nil, err
		}
		config.DialFunc = dial
		under = stdlib.GetConnector(*config)
	case inboxsql.MySQL:
		config, err := mysql.ParseDSN(d.Address)
		if err != nil {
			return nil, err
		}
		config.DialFunc = dial
		config.InterpolateParams = true // else a claim is prepared, and that is not seen here
		if under, err = mysql.NewConnector(config); err != nil {
			return nil, err
		}
	case inboxsql.SQLite, inboxsql.PostgresRotating: // the latter is not in the matrix
		under = file(d.Address)
	}
	if l != nil {
		under = &connector{under, l, d.Inbox}
	}
	db := sql.OpenDB(under)
	db.SetMaxOpenConns(4)
	return db, nil
}

// file is a SQLite database.
type file string

// Connect implements [driver.Connector].
func (f file) Connect(context.Context) (driver.Conn, error) {
	return f.Driver().Open("file:" + string(f) + sqlitetest.WAL)
}

// Driver implements [driver.Connector].
func (file) Driver() driver.Driver { return &sqlite.Driver{} }

// newDatabase makes the tables of a cell. Neither has a constraint that would hide
// an effect that happens twice. The table naive is the inbox that people write by hand, and out is an outbox.
func newDatabase(t *testing.T, name, suffix string) (database, *sql.DB) {
	t.Helper()
	d := database{Inbox: "inbox" + suffix, Effects: "effects" + suffix}
	switch name {
	case "PostgreSQL":
		servers.Postgres.Need(t)
		d.Dialect, d.Address = inboxsql.Postgres, servers.Postgres.Address()
	case "MariaDB":
		servers.MariaDB.Need(t)
		d.Dialect, d.Address = inboxsql.MySQL, servers.MariaDB.Address()
	default:
		d.Dialect, d.Address = inboxsql.SQLite, filepath.Join(t.TempDir(), "crash.db")
	}
	db, err := d.open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, table := range []string{d.Inbox, d.Effects, "naive" + d.Inbox, "out" + d.Inbox} {
			if _, err := db.ExecContext(context.WithoutCancel(t.Context()), "DROP TABLE IF EXISTS "+table); err != nil {
				t.Error(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	store := inboxsql.MustNew(db, &inboxsql.Config{Dialect: d.Dialect, Table: d.Inbox})
	if err := store.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE " + d.Effects + " (id VARCHAR(100) NOT NULL)",
		"CREATE TABLE naive" + d.Inbox + " (id VARCHAR(100) NOT NULL PRIMARY KEY)",
		"CREATE TABLE out" + d.Inbox + " (id VARCHAR(200) NOT NULL, parent VARCHAR(100) NOT NULL)",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return d, db
}
