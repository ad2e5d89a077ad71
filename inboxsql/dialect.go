package inboxsql

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// Dialect names the SQL that a database speaks.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres"
	MySQL    Dialect = "mysql" // MariaDB too
	SQLite   Dialect = "sqlite"

	// PostgresRotating keeps the keys in two tables instead of one, and removes a whole
	// table at once instead of rows. See "Two generations" in the documentation of this
	// package. Only Config.Dialect selects it.
	PostgresRotating Dialect = "postgres_rotating"
)

// dialect is all that differs between databases: text, and what their errors
// and transactions mean.
type dialect struct {
	name Dialect

	// quote encloses an identifier.
	quote string

	// sqlxName is a driver name that sqlx knows the bind variables of, for the
	// transactions that handlers get when they gave us a plain *sql.DB.
	sqlxName string

	// drivers are the package paths of drivers, and the names they register.
	drivers []string

	statements

	// bind makes a column value of a key part.
	bind func(string) any

	// returns says that the claim returns what tells it from a later claim of the
	// key, as its one row, and that keep and unclaim take it after the key. Otherwise the connection remembers it.
	returns bool

	// waiting returns the claim that waits for another delivery for at most the
	// given time, zero or less: not at all, and its arguments after the row.
	waiting func(s *statements, wait time.Duration) (claim string, args []any)

	// clientWait says that the server cannot bound the claim's wait, so that it
	// has to be cut off from here, which costs the connection.
	clientWait func(server string) bool

	// classify says what an error of the driver means, by its code.
	classify func(error) errorKind

	// inTx reports whether the connection is still in the transaction that the
	// store began.
	inTx func(ctx context.Context, tx *sqlx.Tx, server string) (bool, error)

	// status reads the same from the driver, free of charge, if it is one that
	// tells. Nil: none does.
	status func(conn *sqlx.Conn) (in, known bool)

	// unclaimFirst says that a claim that outlived its transaction has to be removed
	// before the rollback, as a driver may give the connection up over that.
	unclaimFirst bool

	// duration is how a statement of a sweep takes a duration.
	duration func(time.Duration) any

	// instant is how a statement takes a time.
	instant func(time.Time) any

	// oldest is where a sweep begins.
	oldest string

	// sweepOptions are those of the transaction of a sweep.
	sweepOptions *sql.TxOptions

	// silentCommit says that COMMIT succeeds without a transaction to commit.
	silentCommit bool

	// level is the one isolation level at which the claim finds every duplicate. Zero:
	// any is.
	level sql.IsolationLevel
}

// statements are whole; {table} and other names are put in once, at construction.
type statements struct {
	claim    string   // row: consumer, source, message_id, event_type, fingerprint, outcome; see returns
	claims   []string // the claim by whole seconds of waiting, where {wait} is a literal in it
	entry    string   // of a key
	keep     string   // result, produced, then the claim
	orphan   string   // counts the committed row of the claim
	unclaim  string   // removes it
	forget   string   // removes the row of a key
	list     string   // rows of a range: from and to consumer, from and until received, limit
	lease    string   // renews or takes over the lease of sweepers: owner, lease as a duration, key of the lease
	newLease string   // inserts it: key of the lease, owner
	byIndex  string   // empty, or: makes the planner read a batch by its index, within a transaction
	batch    string   // how many rows a batch has, after the newest of them: after, window, from and to consumer, limit
	sweep    string   // removes them; the same
	describe string   // the table: column, limit in bytes or 0, flaw or '', server
	advise   string   // settings: fatal, problem, remedy
	lock     string   // empty, or: serializes CreateTable within a transaction

	// Of two generations, which have no lease, newLease, batch and sweep.
	due              string // whether a rotation is, and about how many rows it removes: longest window
	lockTables       string // keeps deliveries out; several statements
	rotate           string // empties one table and exchanges their names; several statements
	describePrevious string // the second table

	other string // empty, or: the dialect whose table of this name is there, or no row
}

func dialects() []*dialect { return []*dialect{postgres(), postgresRotating(), mysql(), sqlite()} }

// rotates says that the dialect has two tables, which change places.
func (d *dialect) rotates() bool { return d.rotate != "" }

func dialectNamed(name Dialect) (*dialect, error) {
	for _, d := range dialects() {
		if d.name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("inboxsql: unknown dialect %q: set Config.Dialect to inboxsql.Postgres, PostgresRotating, MySQL or SQLite", name)
}

// dialectOf finds the dialect by the package of the driver, which users cannot
// rename, then by the name that the database was opened under.
func dialectOf(db *sqlx.DB) (*dialect, error) {
	typ := reflect.TypeOf(db.Driver())
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	for _, d := range dialects() {
		if slices.Contains(d.drivers, typ.PkgPath()) || slices.Contains(d.drivers, db.DriverName()) {
			return d, nil
		}
	}
	return nil, fmt.Errorf("inboxsql: cannot tell the SQL dialect from driver %s (a wrapped driver?): set Config.Dialect to inboxsql.Postgres, PostgresRotating, MySQL or SQLite", typ)
}

// prepare returns d with the names of one table in its statements.
func (d *dialect) prepare(table string) *dialect {
	fill := d.names(table)
	p := *d
	for _, text := range []*string{
		&p.claim, &p.entry, &p.keep, &p.orphan, &p.unclaim, &p.forget, &p.list, &p.describe, &p.advise,
		&p.lease, &p.newLease, &p.batch, &p.sweep,
		&p.due, &p.lockTables, &p.rotate, &p.describePrevious, &p.other,
	} {
		*text = fill.Replace(*text)
	}
	if strings.Contains(p.claim, "{wait}") {
		p.claims = make([]string, longestWait+1)
		for seconds := range p.claims {
			p.claims[seconds] = strings.ReplaceAll(p.claim, "{wait}", strconv.Itoa(seconds))
		}
	}
	return &p
}

// names puts the names of one table into a text.
func (d *dialect) names(table string) *strings.Replacer {
	schema, name, ok := strings.Cut(table, ".")
	in := d.ident(schema) + "."
	if !ok {
		schema, name, in = "", table, ""
	}
	return strings.NewReplacer("{table}", d.ident(table), "{schema}", schema, "{name}", name, "{in}", in,
		"{current}", d.ident(table+current), "{previous}", d.ident(table+previous))
}

// What the names of the two tables of a rotating dialect end in.
const (
	current  = "_current"
	previous = "_previous"
)

// longestWait bounds, in seconds, one statement that has its wait as a literal; a
// longer wait is made of several.
const longestWait = 60

// ident quotes a validated name or schema.name.
func (d *dialect) ident(table string) string {
	return d.quote + strings.ReplaceAll(table, ".", d.quote+"."+d.quote) + d.quote
}
