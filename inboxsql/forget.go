package inboxsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// Forget removes a key, so that the next delivery of its message is processed
// again, and returns the entry that it removed, and whether there was one. The
// message must be sent again by someone: forgetting does not.
//
// All processes see it at once. A delivery in flight is waited for as by another
// delivery: up to Config.Wait, then the error is [inbox.ErrInFlight] and nothing is
// removed.
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

// Range selects keys. One that is empty selects none, and is refused.
type Range struct {
	// Consumer is the name of one, without the namespace. Empty: all consumers of the
	// store's namespace.
	Consumer string

	// From and Until are when the messages were received first, by the database's
	// clock: from inclusive, until exclusive. Zero: without a bound. What is received
	// after the call has begun is never in the range.
	From, Until time.Time
}

// ForgetRange is [Store.Forget] for many keys: it removes them batch by batch, and
// calls removed, which may be nil, with each of them after its batch was committed.
// The entries have no record, result or fingerprint. It returns how many keys were
// removed, also with an error.
//
// Deliveries in flight are not waited for: their keys stay.
func (s *Store) ForgetRange(ctx context.Context, which Range, removed func(inbox.Entry)) (int, error) {
	switch {
	case which == Range{}:
		return 0, errors.New("inboxsql: forget: an empty range would be all keys: set a consumer or a time")
	case !which.Until.IsZero() && which.Until.Before(which.From):
		return 0, fmt.Errorf("inboxsql: forget: a range from %s until %s", which.From, which.Until)
	}
	parts := s.ranges(false)
	if which.Consumer != "" {
		stored := inNamespace(s.cfg.Namespace, which.Consumer)
		parts = []pass{{from: stored, to: stored + first}}
	}
	n := 0
	until := latest
	if !which.Until.IsZero() {
		until = which.Until
	}
	for _, part := range parts {
		for {
			gone, now, more, err := s.forgetBatch(ctx, part, which.From, until)
			// Or it would never end beside a consumer that gets its messages again. SQLite
			// has milliseconds.
			if end := now.Add(time.Millisecond); !now.IsZero() && end.Before(until) {
				until = end
			}
			for _, e := range gone {
				n++
				if removed != nil {
					removed(e)
				}
			}
			if err != nil {
				return n, err
			}
			if !more {
				break
			}
		}
	}
	return n, nil
}

// latest is after all times that a database has.
var latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // constant

// forgetMost is how many keys one transaction removes.
const forgetMost = 500

// forgetBatch removes some keys of a range in one transaction. It returns them, the
// time of the database, and whether there may be more.
func (s *Store) forgetBatch(ctx context.Context, part pass, from, until time.Time) (gone []inbox.Entry, now time.Time, more bool, err error) {
	r := s.newDelivery(ctx, inbox.Delivery{})
	r.options = s.dialect.sweepOptions
	if _, err = r.open(ctx); err != nil {
		return nil, now, false, err
	}
	defer r.conn.Close() //nolint:errcheck // gives the connection back
	for attempt := 1; ; attempt++ {
		err = r.transact(ctx, func(tx *sqlx.Tx) (err error) {
			var found []inbox.Entry
			found, now, err = r.list(ctx, tx, part, from, until)
			if err != nil {
				return r.failed(inbox.OpForget, err)
			}
			more = len(found) == forgetMost
			gone = nil
			for _, e := range found {
				key := e.Key
				n, err := affected(tx.ExecContext(ctx, r.dialect.forget, r.dialect.bind(key.Consumer), r.dialect.bind(key.Source), r.dialect.bind(key.MessageID)))
				if err != nil {
					return r.failed(inbox.OpForget, err)
				}
				if n > 0 { // else someone else was faster
					e.Key.Consumer = outOfNamespace(s.cfg.Namespace, key.Consumer)
					gone = append(gone, e)
				}
			}
			return nil
		})
		switch kind := r.dialect.classify(err); {
		case err == nil:
			return gone, now, more, nil
		case (kind == kindBusy || kind == kindLocked || kind == kindConflict) && time.Now().Before(r.deadline) && ctx.Err() == nil:
			pause(ctx, attempt)
			continue
		}
		return nil, now, false, err
	}
}

func (r *delivery) list(ctx context.Context, tx *sqlx.Tx, part pass, from, until time.Time) (found []inbox.Entry, now time.Time, err error) {
	rows, err := tx.QueryContext(ctx, r.dialect.list, r.dialect.bind(part.from), r.dialect.bind(part.to), r.dialect.instant(from), r.dialect.instant(until), forgetMost)
	if err != nil {
		return nil, now, err
	}
	defer rows.Close() //nolint:errcheck // reported by rows.Err
	for rows.Next() {
		var e inbox.Entry
		var eventType, outcome sql.NullString
		var received, processed, age, at int64 // microseconds
		if err := rows.Scan(&e.Key.Consumer, &e.Key.Source, &e.Key.MessageID, &eventType, &outcome, &received, &processed, &age, &at); err != nil {
			return nil, now, err
		}
		e.EventType, e.Discard = eventType.String, reason(outcome.String)
		e.ReceivedAt, e.ProcessedAt, now = time.UnixMicro(received).UTC(), time.UnixMicro(processed).UTC(), time.UnixMicro(at).UTC()
		e.Age = max(time.Duration(age)*time.Microsecond, 0)
		found = append(found, e)
	}
	return found, now, rows.Err()
}
