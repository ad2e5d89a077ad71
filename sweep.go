package inbox

import (
	"context"
	"time"
)

// SweepLease is for how long a sweeper is alone after its last batch.
const SweepLease = 30 * time.Second

// Sweeper is the optional ability of a store to remove the keys whose window is
// over. Package retention calls it at the right pace.
type Sweeper interface {
	Windowed

	// Sweep removes one batch of keys, the oldest first, in a short transaction of
	// its own. By the database's clock, a key goes [ClockSkew] after its window, or
	// later. A key that another transaction has locked is left for a later sweep.
	//
	// Of all owners, in any number of processes, one is let through at a time: for
	// the others Swept.Elsewhere is true, and nothing is removed, until the one has
	// not called for [SweepLease].
	//
	// A store may remove many keys in one step instead, whatever Batch.Limit says, when
	// the longest window of all of them is over. It then lets all owners through, and
	// is [ErrBusy] as long as others use the keys.
	//
	// An error is a [*StoreError], and nothing was removed, unless it is at
	// [OpCommit]; it is [ErrBusy] after a deadlock, or where others kept the database
	// busy. Sweep ends with ctx.
	Sweep(ctx context.Context, b Batch) (Swept, error)
}

// Batch is what [Sweeper] is asked to remove.
type Batch struct {
	// Owner tells one caller from the others. Not empty.
	Owner string

	// Limit is how many keys are removed at most. At least one.
	Limit int

	// All includes the keys of other namespaces in the same table, by the windows
	// that this store has for its own.
	All bool

	// From is Swept.Next of the batch before. The zero value begins with the oldest
	// key.
	From Position
}

// Position is where a sweep goes on. It is the store's to interpret.
type Position struct {
	Pass  int
	After string
}

// Swept is what became of a [Batch].
type Swept struct {
	Removed   int      // how many keys; a store may estimate
	Next      Position // where the next batch begins
	Done      bool     // nothing is left to remove now
	Elsewhere bool     // another owner sweeps
}
