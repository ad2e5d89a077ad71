package soak_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	"github.com/watermill-inbox/inbox/internal/sqltest"
)

// place is a database: a sound way to it for the test, and one with trouble for the
// services.
type place struct {
	name     string
	database func(t *testing.T, c *chance) (sound, troubled opener, dialect inboxsql.Dialect)
	self     string   // asks for the number of the session
	kill     string   // ends a session; empty: there are none
	troubles []string // those that must have happened at the end of a long run
}

type opener = func() *sql.DB

func places() []place {
	overALine := []string{cutBefore, cutAfter, cutAnswer, refused, killed, committedUnheard}
	return []place{
		{"PostgreSQL", onPostgres, "SELECT pg_backend_pid()", "SELECT pg_terminate_backend($1)", overALine},
		{"MariaDB", onMariaDB, "SELECT CONNECTION_ID()", "KILL ?", overALine},
		{"SQLite", onSQLite, "", "", nil},
	}
}

func onPostgres(t *testing.T, c *chance) (sound, troubled opener, _ inboxsql.Dialect) {
	t.Helper()
	servers.Postgres.Need(t)
	config, err := pgx.ParseConfig(servers.Postgres.Address())
	if err != nil {
		t.Fatal(err)
	}
	shaky := config.Copy()
	shaky.DialFunc = dialer(c)
	return func() *sql.DB { return closing(t, stdlib.OpenDB(*config)) }, func() *sql.DB { return closing(t, stdlib.OpenDB(*shaky)) }, inboxsql.Postgres
}

func onMariaDB(t *testing.T, c *chance) (sound, troubled opener, _ inboxsql.Dialect) {
	t.Helper()
	servers.MariaDB.Need(t)
	config, err := mysql.ParseDSN(servers.MariaDB.Address())
	if err != nil {
		t.Fatal(err)
	}
	shaky := config.Clone()
	shaky.DialFunc = dialer(c)
	shaky.Logger = &mysql.NopLogger{} // it reports each broken line
	open := func(config *mysql.Config) opener {
		return func() *sql.DB {
			connector, err := mysql.NewConnector(config)
			if err != nil {
				t.Fatal(err)
			}
			return closing(t, sql.OpenDB(connector))
		}
	}
	return open(config), open(shaky), inboxsql.MySQL
}

func onSQLite(t *testing.T, _ *chance) (sound, troubled opener, _ inboxsql.Dialect) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "soak.db")
	open := func() *sql.DB { return sqlitetest.OpenFile(t, file, "") }
	return open, open, inboxsql.SQLite
}

func closing(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the pool: %v", err)
		}
	})
	return db
}

// open makes the tables, and returns them beside the harness's instance.
func (p place) open(t *testing.T, c *chance) (database sqltest.Database, tables func() *sqltest.Tables) {
	t.Helper()
	sound, troubled, dialect := p.database(t, c)
	var made *sqltest.Tables
	return sqltest.Database{
		Dialect: dialect,
		Place:   func(*testing.T) func() *sql.DB { return sound },
		Admit: func(_ *testing.T, x *sqltest.Tables) func() *sql.DB {
			made = x
			return troubled
		},
	}, func() *sqltest.Tables { return made }
}

// effects reads all rows of the table of effects.
func effects(t *testing.T, tables *sqltest.Tables) (ids []string) {
	t.Helper()
	rows, err := tables.DB.QueryContext(context.Background(), "SELECT id FROM "+tables.EffectsTable()) //nolint:gosec // a table of the test's own
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // reported by rows.Err
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}
