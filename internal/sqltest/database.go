// Package sqltest makes harnesses of the store suite for databases that
// database/sql reaches. It imports no driver.
package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/testutil"
)

// Database is how a database is reached, and what only it can do.
type Database struct {
	Dialect inboxsql.Dialect

	// Place makes a place of the test's own, or finds one that all share, and
	// returns how to open a pool on it. A pool is closed by the test.
	Place func(t *testing.T) func() *sql.DB

	// Admit lets another role use the tables, and returns how the stores open their
	// pools as that role. Nil: they open them at Place, as who made the tables.
	Admit func(t *testing.T, tables *Tables) func() *sql.DB

	// Configure changes the store's settings. Nil: they are as the case wants.
	Configure func(c *inboxsql.Config)

	// Lacks is that of the harness.
	Lacks map[testutil.Ability]string

	// Swallow, Poison and Ends are those of the instance, on its tables. Nil: it
	// lacks them. Ends come on top of those that each database has.
	Swallow func(tables *Tables, inserts int)
	Poison  func(ctx context.Context, tables *Tables) error
	Ends    func(tables *Tables) map[string]testutil.End
}

// mostConns is the size of a pool for which a case wants no particular one.
const mostConns = 10

// Harness returns the harness of the suite.
func (d Database) Harness() testutil.Harness {
	return testutil.Harness{
		Open:  d.open,
		Lacks: d.Lacks,
		Handles: map[string]func(context.Context) error{
			"*sqlx.Tx": func(ctx context.Context) error { _, err := inbox.Tx[*sqlx.Tx](ctx); return err },
			"*sql.Tx":  func(ctx context.Context) error { _, err := inbox.Tx[*sql.Tx](ctx); return err },
			"sqlx.ExtContext": func(ctx context.Context) error {
				_, err := inbox.Tx[sqlx.ExtContext](ctx)
				return err
			},
		},
	}
}

func (d Database) open(t *testing.T, o testutil.Options) *testutil.Instance {
	t.Helper()
	place := d.Place(t)
	var pools []*sql.DB
	pool := func() *sql.DB {
		db := place()
		// A place in memory has one pool, whose size is not to be changed.
		if db.Stats().MaxOpenConnections != 1 {
			db.SetMaxOpenConns(max(o.Conns, 0))
			if o.Conns == 0 {
				db.SetMaxOpenConns(mostConns)
			}
			db.SetMaxIdleConns(mostConns)
		}
		pools = append(pools, db)
		return db
	}
	table := fmt.Sprintf("inbox_%012x", rand.Uint64()>>16) //nolint:gosec // a name, not a secret
	store := func(db *sql.DB) *inboxsql.Store {
		c := inboxsql.Config{Table: table, Wait: o.Wait, Window: o.Window, Windows: o.Windows} // the dialect is found by the driver
		if d.Configure != nil {
			d.Configure(&c)
		}
		return inboxsql.MustNew(db, &c)
	}
	db := pool()
	s := store(db)
	tables := create(t, db, s, d.Dialect, table)
	if d.Admit != nil {
		place = d.Admit(t, tables)
		s = store(pool())
	}
	in := &testutil.Instance{
		Store:   s,
		Again:   func() inbox.Store { return store(pool()) },
		Write:   tables.Write,
		Violate: tables.violate,
		Effects: tables.Effects,
		Keys:    tables.Keys,
		Remove:  tables.Remove,
		Age:     tables.Age,
		Ends:    map[string]testutil.End{},
		InUse: func() (n int) {
			for _, p := range distinct(pools) {
				n += p.Stats().InUse
			}
			return n
		},
	}
	if d.Swallow != nil {
		in.Swallow = func(inserts int) { d.Swallow(tables, inserts) }
	}
	if d.Poison != nil {
		in.Poison = func(ctx context.Context) error { return d.Poison(ctx, tables) }
	}
	if d.Ends != nil {
		in.Ends = d.Ends(tables)
	}
	in.Ends["the handler commits"] = testutil.End{Commits: true, Do: func(ctx context.Context) error {
		return inbox.MustTx[*sql.Tx](ctx).Commit()
	}}
	in.Ends["the handler rolls back"] = testutil.End{Do: func(ctx context.Context) error {
		return inbox.MustTx[*sql.Tx](ctx).Rollback()
	}}
	return in
}

func distinct(pools []*sql.DB) []*sql.DB {
	var out []*sql.DB
	seen := map[*sql.DB]bool{}
	for _, p := range pools {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// timeout bounds each statement from outside: a lock that a delivery left behind
// must fail the case, not hang it.
const timeout = 20 * time.Second
