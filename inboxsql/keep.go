package inboxsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// keep stores what the handler left with its claim, and makes sure that the
// transaction of the claim is the one that will be committed.
func (r *delivery) keep(ctx context.Context, tx *sqlx.Tx, effect inbox.Effect) error {
	r.settled = true
	// A context is seen to be done before those that derive from it are, and so
	// before database/sql knows that it has to roll back.
	if ctx.Err() != nil {
		return r.failed(inbox.OpRecord, ended(ctx, sql.ErrTxDone))
	}
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

// suspect reports whether the claim of a handler that has failed may have outlived
// its transaction. Where only a statement can tell, DDL in a stored procedure that
// begins a transaction of its own hides it even from that.
func (r *delivery) suspect(ctx context.Context, tx *sqlx.Tx) bool {
	if r.dialect.silentCommit || ctx.Err() != nil {
		return true
	}
	in, err := r.inTx(ctx, tx, true)
	return errors.Is(err, sql.ErrTxDone) || (err == nil && !in)
}

// unclaim removes the claim of a handler that has failed, if it outlived its
// transaction: without its effects it would turn the next delivery into a
// duplicate. It looks before it deletes, as a DELETE would wait for the next
// delivery of the key.
func (r *delivery) unclaim(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var n int
	if err := r.conn.QueryRowContext(ctx, r.dialect.orphan, r.thisClaim()...).Scan(&n); err != nil {
		return errors.Join(cause, r.failed(inbox.OpRollback, fmt.Errorf("look whether the claim outlived its handler: %w", err)))
	}
	if n == 0 {
		return cause // rolled back, by a deadlock, say
	}
	const committed = "the handler committed it (by Commit, or a statement such as DDL), so that its effects up to there stay although it failed"
	if _, err := r.conn.ExecContext(ctx, r.dialect.unclaim, r.thisClaim()...); err != nil {
		ended := fmt.Errorf("%w: %s, and its key could not be removed: forget it, or the next delivery is taken for a duplicate: %w", inbox.ErrTxEnded, committed, err)
		return errors.Join(cause, r.failed(inbox.OpCommit, ended))
	}
	return errors.Join(cause, r.failed(inbox.OpCommit, fmt.Errorf("%w: %s; its key was removed again", inbox.ErrTxEnded, committed)))
}

func (r *delivery) commitError(ctx context.Context, err error) error {
	if r.dialect.classify(err) == kindNoTx {
		return fmt.Errorf("%w: %w", errEnded, err)
	}
	return ended(ctx, err)
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

var (
	errEnded        = fmt.Errorf("%w while the handler ran: statements after that may have been committed one by one; return every SQL error, and no DDL in handlers", inbox.ErrTxEnded)
	errHandlerEnded = fmt.Errorf("%w: the handler called Commit or Rollback on it, which is the inbox's to do", inbox.ErrTxEnded)
)
