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
	errHandlerEnded = fmt.Errorf("%w: the handler called Commit or Rollback on it, which is the inbox's to do", inbox.ErrTxEnded)
	errDuplicate    = errors.New("duplicate")
	errDiscarded    = errors.New("discarded")
	errEnded        = fmt.Errorf("%w while the handler ran: statements after that may have been committed one by one; return every SQL error, and no DDL in handlers", inbox.ErrTxEnded)
	errUnclear      = errors.New("the key was neither stored nor found: the table swallowed the insert (a trigger, a CHECK constraint, or row security)")
)

// connected takes a connection for the delivery.
func (r *delivery) connected(ctx context.Context, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return inbox.Entry{}, false, r.failed(inbox.OpConnect, err)
	}
	defer conn.Close() //nolint:errcheck // gives the connection back; there is nothing to learn from it
	t, err := r.describe(ctx, conn)
	if err != nil {
		return inbox.Entry{}, false, r.failed(inbox.OpConnect, err)
	}
	key := r.d.Key
	key.Consumer = inNamespace(r.cfg.Namespace, key.Consumer)
	if err := t.fits(key); err != nil {
		return inbox.Entry{}, false, err
	}
	r.conn, r.server = conn, t.server
	r.key = []any{r.dialect.bind(key.Consumer), r.dialect.bind(key.Source), r.dialect.bind(key.MessageID)}
	run, release := inbox.Detach(ctx)
	defer release()
	return r.once(run, fn)
}

func (r *delivery) once(ctx context.Context, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	first := inbox.Entry{Delivery: r.d}
	entry, err := r.claim(ctx, inbox.OpClaim, "", func(tx *sqlx.Tx) error {
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
		entry, err = r.claim(ctx, inbox.OpDiscard, cut(first.Discard, maxReason), func(*sqlx.Tx) error { return nil })
	}
	switch {
	case err == errDuplicate: //nolint:errorlint // ours, never wrapped
		return entry, true, nil
	case err != nil:
		return inbox.Entry{}, false, err
	}
	return first, false, nil
}

// claim runs body in a transaction that begins with the claim of the key. What
// fails before the key is claimed is tried again within bounds, as nothing has
// run yet. A duplicate is errDuplicate and the entry.
func (r *delivery) claim(ctx context.Context, op inbox.Op, discard string, body func(tx *sqlx.Tx) error) (inbox.Entry, error) {
	const most = 10 // deadlocks and the like in a row
	for attempt := 1; ; attempt++ {
		if err := r.started.Err(); err != nil && op == inbox.OpClaim {
			return inbox.Entry{}, r.failed(inbox.OpBegin, err)
		}
		var entry inbox.Entry
		err := r.transact(ctx, func(tx *sqlx.Tx) (err error) {
			if entry, err = r.insert(ctx, tx, op, discard); err != nil {
				return err
			}
			r.claimed = true
			return body(tx)
		})
		if err == nil || r.claimed {
			r.claimed = false // a discard claims once more
			return inbox.Entry{}, err
		}
		if err == errDuplicate { //nolint:errorlint // ours, never wrapped
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
		case kind == kindUnstorable:
			return inbox.Entry{}, &inbox.KeyError{Key: r.d.Key, Reason: fmt.Sprintf("the table cannot hold it: use Hashed (%v)", err)}
		case kind == kindNoTable:
			r.table.Store(nil)
			return inbox.Entry{}, r.failed(op, r.noTable())
		default:
			r.table.Store(nil) // look again what it is: it may be another one now
			return inbox.Entry{}, err
		}
		pause(ctx, attempt)
	}
}

// busy returns nil as long as a busy database may be tried again.
func (r *delivery) busy(op inbox.Op, err error) error {
	if time.Until(r.deadline) > 0 && r.started.Err() == nil {
		return nil
	}
	return r.failed(op, fmt.Errorf("%w: waited %s for the other writer: %w", inbox.ErrBusy, max(r.cfg.Wait, 0), err))
}

// transact begins, commits and rolls back: no other place does. Whatever leaves
// body but nil, a panic and [runtime.Goexit] too, ends in a rollback that reaches
// the server even if ctx is done.
func (r *delivery) transact(ctx context.Context, body func(tx *sqlx.Tx) error) (err error) {
	tx, err := r.conn.BeginTxx(ctx, r.cfg.TxOptions)
	if err != nil {
		return r.failed(inbox.OpBegin, err)
	}
	committing := false
	defer func() {
		if !committing {
			err = r.rollback(ctx, tx, err)
		}
	}()
	if err := body(tx); err != nil {
		return err
	}
	committing = true
	if err := tx.Commit(); err != nil {
		r.reset(ctx)
		return r.failed(inbox.OpCommit, r.commitError(ctx, err))
	}
	return nil
}

// rollback ends tx and returns cause, to which it adds only if the handler turns
// out to have committed its claim.
func (r *delivery) rollback(ctx context.Context, tx *sqlx.Tx, cause error) error {
	if r.claimed && !r.settled {
		cause = r.unclaim(ctx, tx, cause)
	}
	// When ctx is done, database/sql rolls back in a goroutine of its own and
	// Rollback does not wait for it: reset does.
	if err := tx.Rollback(); err != nil {
		r.reset(ctx)
	}
	return cause
}

// unclaim removes the claim of a handler that has failed, if it outlived its
// transaction: without its effects it would turn the next delivery into a
// duplicate.
func (r *delivery) unclaim(ctx context.Context, tx *sqlx.Tx, cause error) error {
	in, err := r.inTx(ctx, tx, true)
	if errors.Is(err, sql.ErrTxDone) {
		in, err = false, nil // the handler called Commit or Rollback
	}
	if in || err != nil || ctx.Err() != nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	n, err := affected(r.conn.ExecContext(ctx, r.dialect.unclaim, r.thisClaim()...))
	if err == nil && n == 0 {
		return cause // it was rolled back, by a deadlock, say
	}
	ended := fmt.Errorf("%w: the handler committed it (by Commit, or a statement such as DDL), so that its effects up to there stay although it failed; its key was removed again", inbox.ErrTxEnded)
	return errors.Join(cause, r.failed(inbox.OpCommit, ended), err)
}

// reset makes the connection fit for the next user: a transaction that may still
// be open on it is rolled back, or the connection is thrown away.
func (r *delivery) reset(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := r.conn.ExecContext(ctx, "ROLLBACK"); err != nil && r.dialect.classify(err) != kindNoTx {
		_ = r.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// insert claims the key within tx: errDuplicate and the entry if it is taken.
func (r *delivery) insert(ctx context.Context, tx *sqlx.Tx, op inbox.Op, discard string) (inbox.Entry, error) {
	left := time.Until(r.deadline)
	exec := ctx
	if r.dialect.clientWait != nil && r.dialect.clientWait(r.server) {
		var cancel context.CancelFunc
		exec, cancel = context.WithTimeout(ctx, max(left, time.Second))
		defer cancel()
	}
	claim, more := r.dialect.waiting(&r.dialect.statements, left)
	args := append(make([]any, 0, 7), r.key...)
	args = append(args, text(cut(r.d.EventType, maxEventType)), blob(r.d.Fingerprint), text(outcome(discard)))
	fresh, err := r.exec(exec, tx, claim, append(args, more...))
	switch {
	case err != nil && exec.Err() != nil && ctx.Err() == nil:
		return inbox.Entry{}, r.failed(op, fmt.Errorf("%w: %w", inbox.ErrInFlight, err))
	case err != nil:
		return inbox.Entry{}, r.failed(op, err)
	case fresh:
		return inbox.Entry{}, nil
	}
	// Only a row that this transaction can read is a duplicate: it may have been
	// removed meanwhile, or the table may swallow inserts.
	entry, err := r.read(ctx, tx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return inbox.Entry{}, r.failed(op, errUnclear)
	case err != nil:
		return inbox.Entry{}, r.failed(op, err)
	}
	return entry, errDuplicate
}

// exec runs the claim, and reports whether a row was inserted.
func (r *delivery) exec(ctx context.Context, tx *sqlx.Tx, claim string, args []any) (bool, error) {
	if r.dialect.returns {
		err := tx.QueryRowContext(ctx, claim, args...).Scan(&r.token)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	}
	n, err := affected(tx.ExecContext(ctx, claim, args...))
	return n == 1, err
}

// thisClaim are the arguments by which a statement finds the present claim, and
// not one that came after it.
func (r *delivery) thisClaim(before ...any) []any {
	args := append(before, r.key...)
	if r.dialect.returns {
		args = append(args, r.token)
	}
	return args
}

func (r *delivery) read(ctx context.Context, tx *sqlx.Tx) (inbox.Entry, error) {
	e := inbox.Entry{Delivery: inbox.Delivery{Key: r.d.Key}}
	var eventType, outcome sql.NullString
	var received, processed, age int64 // microseconds
	err := tx.QueryRowContext(ctx, r.dialect.entry, r.key...).
		Scan(&eventType, &e.Fingerprint, &outcome, &e.Result, &e.Record, &received, &processed, &age)
	if err != nil {
		return inbox.Entry{}, err
	}
	e.EventType, e.Discard = eventType.String, reason(outcome.String)
	e.ReceivedAt, e.ProcessedAt = time.UnixMicro(received).UTC(), time.UnixMicro(processed).UTC()
	e.Age = max(time.Duration(age)*time.Microsecond, 0)
	return e, nil
}

// keep stores what the handler left with its claim, and makes sure that the
// transaction of the claim is the one that will be committed.
func (r *delivery) keep(ctx context.Context, tx *sqlx.Tx, effect inbox.Effect) error {
	r.settled = true
	empty := effect.Result == nil && effect.Record == nil
	in, err := r.inTx(ctx, tx, r.dialect.silentCommit)
	if !empty && err == nil {
		var n int64
		n, err = affected(tx.ExecContext(ctx, r.dialect.keep, r.thisClaim(blob(effect.Result), blob(effect.Record))...))
		in = in && n == 1
	}
	switch {
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil:
		// The handler ended it. If it committed, the next delivery is a duplicate,
		// and what was produced must not be lost.
		_, err = r.conn.ExecContext(ctx, r.dialect.keep, r.thisClaim(blob(effect.Result), blob(effect.Record))...)
		return r.failed(inbox.OpCommit, errors.Join(errHandlerEnded, err))
	case err != nil:
		return r.failed(inbox.OpRecord, ended(ctx, err))
	case !in && ctx.Err() != nil:
		return r.failed(inbox.OpRecord, ended(ctx, sql.ErrTxDone))
	case !in:
		return r.failed(inbox.OpCommit, errEnded)
	}
	return nil
}

// inTx reports whether the connection is still in the transaction of the claim,
// as far as that is known: ask says whether a statement may be spent on it.
func (r *delivery) inTx(ctx context.Context, tx *sqlx.Tx, ask bool) (bool, error) {
	if r.dialect.status != nil {
		if in, known := r.dialect.status(r.conn); known {
			return in, nil
		}
	}
	if !ask {
		return true, nil
	}
	return r.dialect.inTx(ctx, tx, r.server)
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (r *delivery) commitError(ctx context.Context, err error) error {
	if r.dialect.classify(err) == kindNoTx {
		return fmt.Errorf("%w: %w", errEnded, err)
	}
	return ended(ctx, err)
}

func (r *delivery) failed(op inbox.Op, err error) error {
	return &inbox.StoreError{Op: op, Key: r.d.Key, Err: err}
}

// ended explains the one database/sql error that hides its cause.
func ended(ctx context.Context, err error) error {
	if !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("rolled back: %w: %w", ctx.Err(), cause)
	}
	return errHandlerEnded
}

// cleanupTimeout bounds what must reach the server after the context is gone.
const cleanupTimeout = 5 * time.Second

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
