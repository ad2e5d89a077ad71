package inboxmw

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"

	"github.com/watermill-inbox/inbox"
)

// ToPoison reports whether a message that failed with err belongs into a poison
// queue; it is the filter of PoisonQueueWithFilter. Errors of the handler and
// permanent ones do. What another delivery may not meet does not: a database out
// of reach, a copy in flight, a router that shuts down, a mistake in the wiring.
func ToPoison(err error) bool {
	if err == nil {
		return false
	}
	if inbox.Permanent(err) {
		return true
	}
	var store *inbox.StoreError
	var network net.Error
	if errors.As(err, &store) || errors.As(err, &network) {
		return false
	}
	for _, passing := range []error{
		inbox.ErrInFlight, inbox.ErrBusy, inbox.ErrTxEnded, inbox.ErrNoTx, inbox.ErrNoTable,
		inbox.ErrNoTopic, inbox.ErrRecord, inbox.ErrNested, inbox.ErrConsumer,
		context.Canceled, driver.ErrBadConn, sql.ErrConnDone,
	} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return true
}
