package inboxmw

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/watermill-inbox/inbox"
)

// ToPoison reports whether a message that failed with err belongs into a poison
// queue; it is the filter of PoisonQueueWithFilter. Errors of the handler and
// permanent ones do. What another delivery may
// not meet does not: a database out of reach, a deadline, as a database that hangs
// looks like a handler that does, a deadlock that the database names by
// an SQLSTATE, a copy in flight, a router that shuts down, a mistake in the wiring;
// nor does what failed after the commit.
func ToPoison(err error) bool {
	if err == nil || errors.Is(err, inbox.ErrAfterCommit) {
		return false
	}
	if inbox.Permanent(err) {
		return true
	}
	var store *inbox.StoreError
	var network *net.OpError
	var name *net.DNSError
	if errors.As(err, &store) || errors.As(err, &network) || errors.As(err, &name) || passingState(err) {
		return false
	}
	for _, passing := range []error{
		inbox.ErrInvalidKey, inbox.ErrInFlight, inbox.ErrBusy, inbox.ErrTxEnded, inbox.ErrNoTx, inbox.ErrNoTable,
		inbox.ErrNoTopic, inbox.ErrRecord, inbox.ErrNested, inbox.ErrConsumer,
		context.Canceled, context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return true
}

// passingState reports whether the database says, by the class of its SQLSTATE,
// that the statement may succeed the next time: connection, transaction rolled
// back, resources, operator.
func passingState(err error) bool {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) || len(coded.SQLState()) != 5 {
		return false
	}
	switch coded.SQLState()[:2] {
	case "08", "40", "53", "57":
		return true
	}
	return false
}
