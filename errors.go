package inbox

import (
	"errors"
	"fmt"
)

// Errors that callers can look for with [errors.Is].
var (
	// ErrNoTx: the context carries no transaction of the wanted type.
	ErrNoTx = errors.New("inbox: no transaction")

	// ErrTxEnded: the transaction is over although someone counts on it: a
	// goroutine outlived its handler, or the transaction ended while the handler
	// ran (a swallowed deadlock, DDL on MySQL, an interrupted write on SQLite, a
	// Commit or Rollback by the handler). In the latter case statements that ran
	// after the end may have been committed one by one.
	ErrTxEnded = errors.New("inbox: transaction has ended")

	// ErrInvalidKey: the key is empty, too long or cannot be stored. See [KeyError].
	ErrInvalidKey = errors.New("inbox: invalid key")

	// ErrInFlight: another delivery of the same message is still being processed.
	ErrInFlight = errors.New("inbox: another delivery of this message is in flight")

	// ErrBusy: the database was busy for the whole of the bounded wait.
	ErrBusy = errors.New("inbox: database is busy")

	// ErrNoTable: the table does not exist, or is not one that this version can
	// use safely.
	ErrNoTable = errors.New("inbox: no usable table")

	// ErrNoTopic: there are produced messages and no topic to publish them to.
	ErrNoTopic = errors.New("inbox: no topic for produced messages")

	// ErrProduced: the produced messages cannot be kept. Permanent.
	ErrProduced = errors.New("inbox: produced messages refused")

	// ErrRecord: a stored record cannot be read or replayed.
	ErrRecord = errors.New("inbox: unreadable record")

	// ErrMismatch: the key was processed with another payload. Permanent.
	ErrMismatch = errors.New("inbox: a duplicate has other content than the first delivery of its key")

	// ErrTooOld: the message was sent longer ago than the window, so that no one
	// knows any more whether it was processed. Permanent.
	ErrTooOld = errors.New("inbox: message is older than the window")

	// ErrAfterCommit: the effects are committed, and what failed came after:
	// publishing what the handler produced, or OnDuplicate. The next delivery is a
	// duplicate and tries again.
	ErrAfterCommit = errors.New("inbox: failed after the commit")

	// ErrNested: two inboxes stand around one handler and would claim two keys.
	ErrNested = errors.New("inbox: another inbox is already around this message")

	// ErrConsumer: two handlers of one inbox share a consumer name, so each would
	// take the other's messages for duplicates.
	ErrConsumer = errors.New("inbox: two handlers are one consumer")
)

// Op is the step of a delivery, or the operation, at which a store failed.
type Op string

// The steps, in order, and what operators do.
const (
	OpConnect  Op = "connect" // waiting for a connection, reading the table's definition
	OpBegin    Op = "begin"
	OpClaim    Op = "claim"
	OpRecord   Op = "record" // storing what the handler produced
	OpCommit   Op = "commit"
	OpRollback Op = "rollback" // of a failed handler, when the connection was lost
	OpDiscard  Op = "discard"  // the second transaction of a discarded delivery
	OpLookup   Op = "lookup"   // reading an entry, for an operator
	OpForget   Op = "forget"   // removing one
	OpSweep    Op = "sweep"    // removing those whose window is over
)

// StoreError says at which step a delivery failed in the store. At [OpCommit]
// the outcome is unknown unless Err is [ErrTxEnded].
type StoreError struct {
	Op  Op
	Key Key // zero if it was not about one
	Err error
}

func (e *StoreError) Error() string {
	if e.Key == (Key{}) {
		return fmt.Sprintf("inbox: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("inbox: %s %s: %v", e.Op, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// KeyError says why a key was refused. It is [ErrInvalidKey], and permanent unless
// Part is "consumer".
type KeyError struct {
	Key    Key
	Part   string // "consumer", "source" or "message id"
	Reason string
	Err    error // what the key function failed with; nil otherwise
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("%v %s: %s", ErrInvalidKey, e.Key, e.Reason)
}

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrInvalidKey].
func (e *KeyError) Is(target error) bool { return target == ErrInvalidKey }

// Permanent reports true, as the same message is refused again, unless it is the
// consumer that is refused: that is the program's fault, for all messages.
func (e *KeyError) Permanent() bool { return e.Part != partConsumer }

// The parts of a key, as errors name them.
const (
	partConsumer  = "consumer"
	partSource    = "source"
	partMessageID = "message id"
)

// Permanent reports whether err says of itself that the same message fails again
// however often it is delivered: the first error in its chain that has a method
// Permanent() bool decides. Without a poison queue such a message is nacked for
// ever.
func Permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
