package inboxsql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// Lookup returns the entry of a key, and whether there is one. A delivery in
// flight has none yet. The parts of the key are those of the middleware: the
// consumer without the namespace, the message id as its Part returns it.
func (s *Store) Lookup(ctx context.Context, key inbox.Key) (inbox.Entry, bool, error) {
	r := s.newDelivery(ctx, inbox.Delivery{Key: key})
	return r.connected(ctx, func(ctx context.Context) (inbox.Entry, bool, error) {
		entry, err := r.read(ctx, r.conn)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return inbox.Entry{}, false, nil
		case err != nil:
			return inbox.Entry{}, false, r.failed(inbox.OpLookup, err)
		}
		return entry, true, nil
	})
}

// Forget removes a key, so that the next delivery of its message is processed
// again, and returns the entry that it removed, and whether there was one. The
// message must be sent again by someone: forgetting does not.
//
// A delivery in flight is waited for as by another delivery: up to Config.Wait,
// then the error is [inbox.ErrInFlight] and nothing is removed.
func (s *Store) Forget(ctx context.Context, key inbox.Key) (inbox.Entry, bool, error) {
	r := s.newDelivery(ctx, inbox.Delivery{Key: key})
	return r.connected(ctx, func(ctx context.Context) (inbox.Entry, bool, error) {
		// A DELETE alone would not see the row of a delivery in flight; a claim waits.
		entry, err := r.claim(ctx, inbox.OpForget, "", func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, r.dialect.forget, r.key...)
			if err != nil {
				return r.failed(inbox.OpForget, err)
			}
			return nil
		}, func(*sqlx.Tx) error {
			r.settled = true
			return errAbsent
		})
		switch {
		case err == errAbsent: //nolint:errorlint // ours, never wrapped
			return inbox.Entry{}, false, nil
		case err != nil:
			return inbox.Entry{}, false, err
		}
		return entry, true, nil
	})
}

var errAbsent = errors.New("absent")
