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

func (r *delivery) read(ctx context.Context, from interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (inbox.Entry, error) {
	e := inbox.Entry{Delivery: inbox.Delivery{Key: r.d.Key}}
	var eventType, outcome sql.NullString
	var received, processed, age int64 // microseconds
	err := from.QueryRowContext(ctx, r.dialect.entry, r.key...).
		Scan(&eventType, &e.Fingerprint, &outcome, &e.Result, &e.Record, &received, &processed, &age)
	if err != nil {
		return inbox.Entry{}, err
	}
	e.EventType, e.Discard = eventType.String, reason(outcome.String)
	e.ReceivedAt, e.ProcessedAt = time.UnixMicro(received).UTC(), time.UnixMicro(processed).UTC()
	e.Age = max(time.Duration(age)*time.Microsecond, 0)
	return e, nil
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

var errUnclear = errors.New("the key was neither stored nor found: the table swallowed the insert (a trigger, a CHECK constraint, or row security)")
