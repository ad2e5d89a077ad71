package inboxsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// transact begins, commits and rolls back: no other place does. Whatever leaves
// body but nil, a panic and [runtime.Goexit] too, ends in a rollback that reaches
// the server even if ctx is done.
func (r *delivery) transact(ctx context.Context, body func(tx *sqlx.Tx) error) (err error) {
	tx, err := r.conn.BeginTxx(ctx, r.options)
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
		_ = r.reset(ctx)
		return r.failed(inbox.OpCommit, r.commitError(ctx, err))
	}
	return nil
}

// rollback ends tx and returns cause, to which it adds only if the handler turns
// out to have committed its claim, or if the connection was lost.
func (r *delivery) rollback(ctx context.Context, tx *sqlx.Tx, cause error) error {
	suspect := r.claimed && !r.settled && r.suspect(ctx, tx)
	if suspect && r.dialect.unclaimFirst && ctx.Err() == nil {
		cause, suspect = r.unclaim(ctx, cause), false
	}
	// When ctx is done, database/sql rolls back in a goroutine of its own and
	// Rollback does not wait for it: reset does.
	if err := tx.Rollback(); err != nil {
		if lost := r.reset(ctx); lost != nil && r.claimed {
			return errors.Join(cause, r.failed(inbox.OpRollback, lost))
		}
	}
	if suspect {
		cause = r.unclaim(ctx, cause)
	}
	return cause
}

// reset makes the connection fit for the next user: a transaction that may still
// be open on it is rolled back, or the connection is thrown away, and the error
// says why.
func (r *delivery) reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := r.conn.ExecContext(ctx, "ROLLBACK")
	if err == nil || r.dialect.classify(err) == kindNoTx {
		return nil
	}
	r.drop()
	return err
}

// drop closes the connection instead of giving it back to the pool.
func (r *delivery) drop() {
	_ = r.conn.Raw(func(any) error { return driver.ErrBadConn })
}

// cleanupTimeout bounds what must reach the server after the context is gone.
const cleanupTimeout = 5 * time.Second
