package inboxsql

import (
	"context"
	"database/sql"
	"errors"

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
