package inboxsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// delivery is one call of Once.
type delivery struct {
	*Store
	conn     *sqlx.Conn
	options  *sql.TxOptions
	server   string
	started  context.Context //nolint:containedctx // asked before each BEGIN whether the caller still waits
	d        inbox.Delivery
	key      []any
	token    string    // tells the present claim from a later one, where the claim returns it
	deadline time.Time // of all waiting
	ran      bool      // the handler was called; nothing is tried again
	claimed  bool      // the key is claimed in the present transaction
	settled  bool      // the handler has succeeded: what it may have committed itself, stays
}

var (
	errDuplicate = errors.New("duplicate")
	errDiscarded = errors.New("discarded")
)

func (s *Store) newDelivery(ctx context.Context, d inbox.Delivery) *delivery {
	return &delivery{Store: s, options: s.cfg.TxOptions, started: ctx, d: d, deadline: time.Now().Add(max(s.cfg.Wait, 0))}
}

// connected calls do with a connection for the delivery, and with the context of
// its transaction.
func (r *delivery) connected(ctx context.Context, do func(context.Context) (inbox.Entry, bool, error)) (inbox.Entry, bool, error) {
	if err := r.d.Key.Validate(); err != nil {
		return inbox.Entry{}, false, err
	}
	for attempt := 1; ; attempt++ {
		entry, found, err := r.onConnection(ctx, do)
		switch {
		case r.ran:
			return entry, found, err
		case errors.Is(err, driver.ErrBadConn) && attempt <= 3:
			// As database/sql does it: a connection that has died in the pool, as all
			// do when the server restarts, is not the message's fault.
			continue
		case r.dialect.classify(err) == kindBusy && !errors.Is(err, inbox.ErrBusy):
			// Opening a connection, or reading the definition, met another writer.
			if err = r.busy(inbox.OpConnect, err); err != nil {
				return entry, found, err
			}
			pause(ctx, attempt)
			continue
		}
		return entry, found, err
	}
}

func (r *delivery) onConnection(ctx context.Context, do func(context.Context) (inbox.Entry, bool, error)) (inbox.Entry, bool, error) {
	t, err := r.open(ctx)
	if err != nil {
		return inbox.Entry{}, false, err
	}
	defer r.conn.Close() //nolint:errcheck // gives the connection back; there is nothing to learn from it
	key := r.d.Key
	key.Consumer = inNamespace(r.cfg.Namespace, key.Consumer)
	if err := t.fits(key); err != nil {
		return inbox.Entry{}, false, err
	}
	r.key = []any{r.dialect.bind(key.Consumer), r.dialect.bind(key.Source), r.dialect.bind(key.MessageID)}
	run, release := inbox.Detach(ctx)
	defer release()
	return do(run)
}

// open takes a connection, which the caller gives back unless there is an error.
func (r *delivery) open(ctx context.Context) (*table, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, r.failed(inbox.OpConnect, err)
	}
	t, err := r.describe(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return nil, r.failed(inbox.OpConnect, err)
	}
	r.conn, r.server = conn, t.server
	return t, nil
}

func (r *delivery) once(ctx context.Context, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	first := inbox.Entry{Delivery: r.d}
	entry, err := r.claim(ctx, inbox.OpClaim, "", duplicate, func(tx *sqlx.Tx) error {
		r.ran = true
		effect, err := fn(inbox.ContextWithTx(ctx, tx.Tx, tx))
		if err != nil {
			return err
		}
		if first.Discard = effect.Discard; first.Discard != "" {
			return errDiscarded
		}
		first.Record, first.Result = effect.Record, effect.Result
		return r.keep(ctx, tx, effect)
	})
	if err == errDiscarded { //nolint:errorlint // ours, never wrapped
		r.deadline = time.Now().Add(max(r.cfg.Wait, 0))
		entry, err = r.claim(ctx, inbox.OpDiscard, cut(first.Discard, maxReason), duplicate, func(*sqlx.Tx) error { return nil })
	}
	switch {
	case err == errDuplicate: //nolint:errorlint // ours, never wrapped
		return entry, true, nil
	case err != nil:
		return inbox.Entry{}, false, err
	}
	return first, false, nil
}

// claim runs fresh in a transaction that begins with the claim of the key, or
// taken if the key is taken; the entry is then the one that has it. What fails
// before that is tried again within bounds, as nothing has run yet.
func (r *delivery) claim(ctx context.Context, op inbox.Op, discard string, taken, fresh func(tx *sqlx.Tx) error) (inbox.Entry, error) {
	const most = 10 // deadlocks and the like in a row
	for attempt := 1; ; attempt++ {
		if err := r.started.Err(); err != nil && op == inbox.OpClaim {
			return inbox.Entry{}, r.failed(inbox.OpBegin, err)
		}
		var entry inbox.Entry
		err := r.transact(ctx, func(tx *sqlx.Tx) (err error) {
			entry, err = r.insert(ctx, tx, op, discard)
			switch {
			case err == errDuplicate: //nolint:errorlint // ours, never wrapped
				return taken(tx)
			case err != nil:
				return err
			}
			r.claimed = true
			return fresh(tx)
		})
		if err == nil || err == errDuplicate || r.claimed { //nolint:errorlint // ours, never wrapped
			r.claimed = false // a discard claims once more
			return entry, err
		}
		left := time.Until(r.deadline)
		switch kind := r.dialect.classify(err); {
		case kind == kindLocked && left <= 0:
			return inbox.Entry{}, r.failed(op, fmt.Errorf("%w: waited %s for its commit or rollback", inbox.ErrInFlight, max(r.cfg.Wait, 0)))
		case kind == kindBusy:
			if err = r.busy(op, err); err != nil {
				return inbox.Entry{}, err
			}
		case kind == kindLocked:
		case kind == kindConflict && attempt < most, errors.Is(err, errUnclear) && attempt < most:
		case kind == kindReadOnly:
			r.drop() // the pool would hand it out again
			return inbox.Entry{}, err
		case kind == kindUnstorable:
			return inbox.Entry{}, &inbox.KeyError{Key: r.d.Key, Part: "message id", Reason: fmt.Sprintf("the table cannot hold it: use Hashed (%v)", err)}
		case kind == kindNoTable:
			r.table.Store(nil)
			return inbox.Entry{}, r.failed(op, r.noTable(ctx, r.conn, r.tables()))
		default:
			r.table.Store(nil) // look again what it is: it may be another one now
			return inbox.Entry{}, err
		}
		pause(ctx, attempt)
	}
}

// duplicate is what a taken key is to a delivery.
func duplicate(*sqlx.Tx) error { return errDuplicate }

// busy returns nil as long as a busy database may be tried again.
func (r *delivery) busy(op inbox.Op, err error) error {
	if time.Until(r.deadline) > 0 && r.started.Err() == nil {
		return nil
	}
	return r.failed(op, fmt.Errorf("%w: waited %s for the other writer: %w", inbox.ErrBusy, max(r.cfg.Wait, 0), err))
}

func (r *delivery) failed(op inbox.Op, err error) error {
	return &inbox.StoreError{Op: op, Key: r.d.Key, Err: err}
}

// pause waits a moment before the next attempt, longer and at random each time,
// so that those who met in a deadlock do not meet again.
func pause(ctx context.Context, attempt int) {
	limit := time.Millisecond << min(attempt+1, 6)
	timer := time.NewTimer(limit/4 + rand.N(limit)) //nolint:gosec // spreads retries; not a secret
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
