package inbox

import (
	"context"
	"time"
)

// Store remembers which keys were processed, in the database that holds the
// handler's effects. An implementation must be safe for concurrent use by
// several goroutines and several processes, and comparable with ==. The suite
// in package testutil checks what is said here.
type Store interface {
	// Once claims d.Key and runs fn in one transaction.
	//
	// If the key is new, fn runs once with a context that carries the transaction
	// (see [ContextWithTx]) and is that of [Detach]. When fn returns nil and a
	// zero Discard, its record and result are stored with the key and everything
	// is committed together. Once then answers with the entry and false.
	//
	// If the key was committed before, fn does not run, nothing is written, and
	// Once answers with the stored entry, true and a nil error. If a delivery that
	// holds the key is still in flight, Once waits for its fate up to a total
	// bound, then fails with [ErrInFlight], or with [ErrBusy] where the store
	// cannot tell that from other work.
	//
	// When fn returns an error, everything is rolled back and that error is
	// returned as it is. When fn panics or calls [runtime.Goexit], everything is
	// rolled back and the panic or exit goes on. When fn returns a Discard, its
	// effects and record are rolled back, and the key is then stored with the
	// reason in a second transaction; if another delivery stored the key in
	// between, Once answers with that entry and true.
	//
	// Any other failure is a [*StoreError]. A failed commit may have been applied:
	// the next delivery finds out. After fn has run, nothing is tried again inside.
	//
	// ctx bounds the wait for a connection. Once it has begun, the transaction
	// follows Detach(ctx).
	Once(ctx context.Context, d Delivery, fn func(ctx context.Context) (Effect, error)) (e Entry, duplicate bool, err error)
}

// Checker is the optional ability of a store to say what is wrong with its
// database before messages flow.
type Checker interface {
	// Check looks at the table and the settings that the guarantee rests on. It
	// returns what it found, worst first, and an error only if it could not look.
	// Safe for concurrent use. It needs a free connection, and may need two.
	Check(ctx context.Context) ([]Finding, error)
}

// Finding is one thing that [Checker] found, in plain words.
type Finding struct {
	// Fatal says that messages would be lost, doubled or refused; a router must
	// not start with it. Otherwise it is advice.
	Fatal bool

	// Problem says what is wrong and what follows from it.
	Problem string

	// Remedy says how to mend it.
	Remedy string
}

// String joins problem and remedy.
func (f Finding) String() string { return f.Problem + "; " + f.Remedy }

// Delivery is what the inbox knows of a message before it is processed. It has
// no payload: payloads are neither stored nor logged.
type Delivery struct {
	Key Key

	// EventType is kept with the key for people who read the table. Empty if
	// unknown. It has no part in what a duplicate is.
	EventType string

	// Fingerprint is a hash of the payload, kept with the key. Nil if not asked for.
	Fingerprint []byte

	// SentAt is when the producer sent the message. Zero if unknown.
	SentAt time.Time
}

// Effect is what a handler leaves with the key, apart from its writes.
type Effect struct {
	// Record is the encoding of the produced messages. Nil if there are none.
	Record []byte

	// Result is a short answer of the handler. Nil if there is none.
	Result []byte

	// Discard, if not empty, undoes the handler's writes, Record and Result, and
	// keeps the key with this reason.
	Discard string
}

// Entry is what a store keeps under a key.
type Entry struct {
	Delivery // SentAt is not kept

	// Record is the encoding of the produced messages, Result the handler's short
	// answer. Nil if there is none; an empty one may be read back as nil.
	Record, Result []byte

	Discard string // why the delivery was discarded; empty if it was processed

	// ReceivedAt and ProcessedAt are by the database's clock, in UTC: the start of
	// the transaction and the claim. Zero in the answer to a first delivery.
	ReceivedAt, ProcessedAt time.Time

	// Age is how long ago ProcessedAt was when the entry was read, by the
	// database's clock. Zero in the answer to a first delivery.
	Age time.Duration
}
