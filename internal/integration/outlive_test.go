package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/testutil"
)

// TestClaimThatOutlivesAFailedHandler commits the claim in ways that hide it: the
// next delivery must not be a duplicate.
func TestClaimThatOutlivesAFailedHandler(t *testing.T) {
	t.Parallel()

	t.Run("a procedure begins a transaction of its own and fails in it", func(t *testing.T) {
		t.Parallel()
		database := onMariaDB(t)
		in := database.Harness().Open(t, testutil.Options{})
		procedure := someTable()
		db := open(t, "mysql", mysqlConfig(t, nil).FormatDSN())
		drop(t, db, "PROCEDURE "+procedure)
		if _, err := db.ExecContext(t.Context(), "CREATE PROCEDURE "+procedure+
			"() BEGIN START TRANSACTION; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no credit'; COMMIT; END"); err != nil {
			t.Fatal(err)
		}
		mustOutlive(t, in, time.Minute, func(ctx context.Context) error {
			tx, err := inboxsql.StdTx(ctx)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "CALL "+procedure+"()")
			return err
		})
	})
	t.Run("DDL commits it, and then the deadline passes", func(t *testing.T) {
		t.Parallel()
		database := onMariaDB(t)
		in := database.Harness().Open(t, testutil.Options{})
		table := someTable()
		drop(t, open(t, "mysql", mysqlConfig(t, nil).FormatDSN()), "TABLE "+table)
		mustOutlive(t, in, 500*time.Millisecond, func(ctx context.Context) error {
			tx, err := inboxsql.StdTx(ctx)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(context.WithoutCancel(ctx), "CREATE TABLE "+table+" (i int)"); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
	})
}

func mustOutlive(t *testing.T, in *testutil.Instance, within time.Duration, handler func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, _, err := in.Store.Once(ctx, d("1"), func(ctx context.Context) (inbox.Effect, error) { return inbox.Effect{}, handler(ctx) })
	if !errors.Is(err, inbox.ErrTxEnded) {
		t.Errorf("got %v, want one that is %v too", err, inbox.ErrTxEnded)
	}
	_, duplicate, err := in.Store.Once(t.Context(), d("1"), func(ctx context.Context) (inbox.Effect, error) {
		return inbox.Effect{}, in.Write(ctx, "effect")
	})
	if duplicate || err != nil || in.Effects("effect") != 1 {
		t.Errorf("the next delivery: duplicate %v, error %v, %d effects", duplicate, err, in.Effects("effect"))
	}
}
