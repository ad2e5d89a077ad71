package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
)

// Tables are those of one case: the inbox table, and beside it the handler's
// table of effects and one with a unique column.
type Tables struct {
	DB    *sql.DB // the pool of the first store
	Inbox string  // the name of the inbox table; see [Names]

	t       *testing.T
	dialect inboxsql.Dialect
}

func create(t *testing.T, db *sql.DB, s *inboxsql.Store, d inboxsql.Dialect, name string) *Tables {
	t.Helper()
	tables := &Tables{DB: db, Inbox: name, t: t, dialect: d}
	if err := s.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, own := range append(Names(d, name), tables.EffectsTable(), tables.UniqueTable()) {
		t.Cleanup(func() { tables.Exec("DROP TABLE IF EXISTS " + own) })
	}
	if d == inboxsql.PostgresRotating { // a rotation does not wait for a vacuum
		for _, own := range Names(d, name) {
			tables.Exec("ALTER TABLE " + own + " SET (autovacuum_enabled = off)")
		}
	}
	tables.Exec("CREATE TABLE " + tables.EffectsTable() + " (id VARCHAR(100) NOT NULL)")
	tables.Exec("CREATE TABLE " + tables.UniqueTable() + " (id VARCHAR(100) NOT NULL PRIMARY KEY)")
	tables.Exec(tables.insertTaken())
	return tables
}

// Names are the names of the tables that an inbox of this name consists of; claims go
// into the first one.
func Names(d inboxsql.Dialect, inbox string) []string {
	if d == inboxsql.PostgresRotating {
		return []string{inbox + "_current", inbox + "_previous"}
	}
	return []string{inbox}
}

// Claims is the name of the table that claims go into.
func (x *Tables) Claims() string { return Names(x.dialect, x.Inbox)[0] }

// EffectsTable is the name of the table of effects.
func (x *Tables) EffectsTable() string { return x.Inbox + "_effects" }

// UniqueTable is the name of the table with a unique column id, and one row: taken.
func (x *Tables) UniqueTable() string { return x.Inbox + "_unique" }

// Exec runs a statement from outside, and fails the test if that fails.
func (x *Tables) Exec(statement string, args ...any) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if _, err := x.DB.ExecContext(ctx, statement, args...); err != nil {
		x.t.Errorf("%s: %v", statement, err)
	}
}

// Cleanup runs a statement when the test ends, before the tables go.
func (x *Tables) Cleanup(statement string) {
	x.t.Helper()
	x.t.Cleanup(func() { x.Exec(statement) })
}

// Write is an effect, through the transaction in ctx.
func (x *Tables) Write(ctx context.Context, id string) error {
	tx, err := inboxsql.Tx(ctx)
	if err != nil {
		return err
	}
	insert := fmt.Sprintf("INSERT INTO %s (id) VALUES (%s)", x.EffectsTable(), x.bind("1"))
	_, err = tx.ExecContext(ctx, insert, id)
	return err
}

func (x *Tables) violate(ctx context.Context) error {
	tx, err := inboxsql.StdTx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, x.insertTaken())
	return err
}

// Effects counts the committed effects with this id.
func (x *Tables) Effects(id string) int {
	x.t.Helper()
	return x.count("SELECT COUNT(*) FROM "+x.EffectsTable()+" WHERE id = "+x.bind("1"), id)
}

// Keys counts the committed keys.
func (x *Tables) Keys() (n int) {
	x.t.Helper()
	for _, table := range Names(x.dialect, x.Inbox) {
		n += x.count("SELECT COUNT(*) FROM " + table)
	}
	return n
}

// Remove deletes a committed key.
func (x *Tables) Remove(key inbox.Key) {
	x.t.Helper()
	where := fmt.Sprintf("consumer = %s AND source = %s AND message_id = %s", x.bind("1"), x.bind("2"), x.bind("3"))
	for _, table := range Names(x.dialect, x.Inbox) {
		x.Exec("DELETE FROM "+table+" WHERE "+where, key.Consumer, key.Source, key.MessageID)
	}
}

// Age has a committed key be received so long ago.
func (x *Tables) Age(key inbox.Key, ago time.Duration) {
	x.t.Helper()
	const postgres = "received_at = now() - $1::bigint * interval '1 microsecond'"
	set := map[inboxsql.Dialect]string{
		inboxsql.Postgres:         postgres,
		inboxsql.PostgresRotating: postgres,
		inboxsql.MySQL:            "received_at = UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND",
		inboxsql.SQLite:           "received_at = strftime('%Y-%m-%d %H:%M:%f', 'now', -(? / 1000000.0) || ' seconds')",
	}[x.dialect]
	consumer := key.Consumer
	if strings.HasPrefix(consumer, "~") { // as a store without a namespace keeps it
		consumer = "~/" + consumer
	}
	where := fmt.Sprintf("consumer = %s AND source = %s AND message_id = %s", x.bind("2"), x.bind("3"), x.bind("4"))
	for _, table := range Names(x.dialect, x.Inbox) {
		x.Exec("UPDATE "+table+" SET "+set+" WHERE "+where, ago.Microseconds(), consumer, key.Source, key.MessageID)
	}
}

func (x *Tables) count(query string, args ...any) int {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var n int
	if err := x.DB.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		x.t.Errorf("%s: %v", query, err)
	}
	return n
}

func (x *Tables) bind(n string) string {
	if x.dialect == inboxsql.Postgres || x.dialect == inboxsql.PostgresRotating {
		return "$" + n
	}
	return "?"
}

func (x *Tables) insertTaken() string {
	return "INSERT INTO " + x.UniqueTable() + " (id) VALUES ('taken')"
}

// MustFail turns a statement that was meant to fail, and did, into nil.
func MustFail(_ any, err error) error {
	if err == nil {
		return errors.New("the statement was meant to fail")
	}
	return nil
}
