package testutil

import (
	"context"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
)

// Harness tells the suite how to reach a store.
type Harness struct {
	// Open makes an empty inbox table, a table for effects beside it, and a store
	// on them. It is called once per case, by cases that run in parallel, and
	// removes what it made with t.Cleanup. It must be set.
	Open func(t *testing.T, o Options) *Instance

	// Lacks names what the store or its database cannot do by nature, and why.
	// Cases that need it are shown as skipped, with the reason. Nil: it can do
	// everything, and a field of [Instance] that is nil fails the cases that need it.
	Lacks map[Ability]string

	// Handles looks up each type of transaction that the store offers, by its
	// name: "*sql.Tx": func(ctx) error { _, err := inbox.Tx[*sql.Tx](ctx); return err }.
	// It must have one at least.
	Handles map[string]func(ctx context.Context) error
}

// Ability is what a store may lack.
type Ability string

// The abilities, in the words in which a skipped case names them.
const (
	// CanBound: a delivery gives up waiting for another one of the same key after
	// Options.Wait. A pool of one connection cannot: it waits for the connection.
	CanBound Ability = "bounds the wait for a delivery in flight"

	// CanTellInFlight: it then fails with [inbox.ErrInFlight], not [inbox.ErrBusy].
	CanTellInFlight Ability = "tells a delivery in flight from a busy database"

	// CanOverlap: deliveries of different keys run at the same time.
	CanOverlap Ability = "runs deliveries at the same time"

	// CanSwallow: see Instance.Swallow.
	CanSwallow Ability = "has tables that swallow an insert without an error"

	// CanPoison: see Instance.Poison.
	CanPoison Ability = "answers COMMIT by a rollback after a failed statement"

	// CanSweep: it is an [inbox.Sweeper]. See Instance.Age.
	CanSweep Ability = "removes keys whose window is over"

	// CanSweepSingly: a sweep removes as many keys as are asked for, each by its own
	// age and the window of its consumer, counts them, and keeps other owners off.
	// Without it, keys go together, when the longest window of all of them is over and
	// younger ones have come.
	CanSweepSingly Ability = "removes keys one by one"

	// CanEnd: see Instance.Ends.
	CanEnd Ability = "lets a handler end the transaction"
)

// Options are what a case wants of the store.
type Options struct {
	// Wait bounds the wait for a delivery in flight. Zero: the store's default,
	// which must be 5 s at least. Negative: no wait. Otherwise a whole number of
	// seconds.
	Wait time.Duration

	// Window and Windows are for how long keys are kept. Zero: the store's default.
	// Negative: for ever.
	Window  time.Duration
	Windows map[string]time.Duration

	// Conns is the size of each connection pool. Zero: any size above eight, or
	// what the database can take. A store without a pool ignores it.
	Conns int
}

// Instance is a store with what a case needs to look at its database from
// outside. All functions fail the test of Open themselves where they return no
// error.
type Instance struct {
	// Store is the store.
	Store inbox.Store

	// Again returns another store on the same tables, with the same Options, as
	// another process has. It is called from the test's goroutine.
	Again func() inbox.Store

	// Write is an effect of a handler: it writes id through the transaction in
	// ctx. An id can be written several times.
	Write func(ctx context.Context, id string) error

	// Violate is a statement of a handler that fails with a unique violation in a
	// table of its own, through the transaction in ctx. It returns that error.
	Violate func(ctx context.Context) error

	// Effects counts the committed effects with this id. It is called when no
	// delivery is in flight.
	Effects func(id string) int

	// Keys counts the committed keys. It is called when no delivery is in flight.
	Keys func() int

	// Remove deletes a committed key from outside, as a cleaner does.
	Remove func(key inbox.Key)

	// Age has a committed key be received so long ago. Nil only if the harness lacks
	// [CanSweep].
	Age func(key inbox.Key, ago time.Duration)

	// Swallow makes the table take this many inserts without storing them and
	// without an error, as a trigger or row security can; negative: all that
	// follow. Nil only if the harness lacks [CanSwallow].
	Swallow func(inserts int)

	// Poison fails a statement in the transaction of ctx, and keeps the error to
	// itself. Nil only if the harness lacks [CanPoison].
	Poison func(ctx context.Context) error

	// Ends are the ways, by name, in which a handler can end the transaction under
	// the store. Empty only if the harness lacks [CanEnd].
	Ends map[string]End

	// InUse counts the connections that deliveries hold. Nil: the store has no
	// pool; what is said of connections is then not checked.
	InUse func() int
}

// End is a way in which the transaction ends while the handler runs.
type End struct {
	// Do ends the transaction in ctx. It returns an error only if it could not.
	Do func(ctx context.Context) error

	// Commits says that claim and effects up to there are then durable.
	Commits bool
}
