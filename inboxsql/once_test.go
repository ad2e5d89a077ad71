package inboxsql_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

// ends are the ways in which a handler can end the transaction that is not its
// own, on purpose or not.
func ends() map[string]func(ctx context.Context) error {
	statement := func(query string) func(context.Context) error {
		return func(ctx context.Context) error {
			tx, err := inboxsql.StdTx(ctx)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, query)
			return err
		}
	}
	return map[string]func(ctx context.Context) error{
		"Commit": func(ctx context.Context) error {
			tx, err := inboxsql.Tx(ctx)
			if err != nil {
				return err
			}
			return tx.Commit()
		},
		"Rollback": func(ctx context.Context) error {
			tx, err := inboxsql.StdTx(ctx)
			if err != nil {
				return err
			}
			return tx.Rollback()
		},
		"COMMIT as a statement":   statement("COMMIT"),
		"ROLLBACK as a statement": statement("ROLLBACK"),
		"INSERT OR ROLLBACK": func(ctx context.Context) error {
			if err := statement("CREATE TEMP TABLE taken (id INTEGER PRIMARY KEY)")(ctx); err != nil {
				return err
			}
			insert := statement("INSERT OR ROLLBACK INTO taken (id) VALUES (1)")
			if err := insert(ctx); err != nil {
				return err
			}
			if insert(ctx) == nil {
				return errors.New("one id was stored twice")
			}
			return nil // swallowed
		},
		"an interrupted write": interrupt,
	}
}

// interrupt swallows the error of a write that was cut off in its midst.
func interrupt(ctx context.Context) error {
	if err := effect(ctx); err != nil {
		return err
	}
	tx, err := inboxsql.Tx(ctx)
	if err != nil {
		return err
	}
	// A write that is cut off before it begins ends nothing.
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		short, cancel := context.WithTimeout(ctx, wait)
		_, err := tx.ExecContext(short, `INSERT INTO effects
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT i FROM n`)
		cancel()
		if err == nil {
			return errors.New("a billion rows were written in no time")
		}
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM effects").Scan(&n); err != nil || n == 0 {
			return err
		}
	}
}

func TestTransactionThatEndedUnderTheHandler(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		// What a commit made lasting cannot be taken back: neither the key, nor what
		// the handler produced, if it succeeded.
		commits := name == "Commit" || name == "COMMIT as a statement"
		for kind, left := range map[string]inbox.Effect{"nothing": {}, "a record": {Record: []byte("record"), Result: []byte("result")}} {
			t.Run("by "+name+" is ErrTxEnded for a handler that leaves "+kind, func(t *testing.T) {
				t.Parallel()
				s := openShop(t, nil)
				_, duplicate, err := s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
					return left, end(ctx)
				})
				if duplicate || !errors.Is(err, inbox.ErrTxEnded) || inbox.Permanent(err) {
					t.Fatalf("got duplicate %v, error %v, want %q", duplicate, err, inbox.ErrTxEnded)
				}
				mustBeAt(t, err, inbox.OpCommit)
				e, duplicate, err := s.deliver(t.Context(), write)
				if err != nil || duplicate != commits {
					t.Fatalf("the next delivery: got duplicate %v, error %v, want %v and none", duplicate, err, commits)
				}
				if commits && (string(e.Record) != string(left.Record) || string(e.Result) != string(left.Result)) {
					t.Errorf("the next delivery found %+v, want what the handler left", e)
				}
				s.exec(t, "DELETE FROM inbox_messages")
				s.mustProcess(t)
			})
		}

		t.Run("by "+name+" leaves no key if the handler then fails", func(t *testing.T) {
			t.Parallel()
			s := openShop(t, nil)
			own := errors.New("out of stock")
			_, duplicate, err := s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
				if err := end(ctx); err != nil {
					return inbox.Effect{}, err
				}
				return inbox.Effect{}, own
			})
			if duplicate || !errors.Is(err, own) || errors.Is(err, inbox.ErrTxEnded) != commits {
				t.Errorf("got duplicate %v, error %v, want the handler's, and %q: %v", duplicate, err, inbox.ErrTxEnded, commits)
			}
			s.mustProcess(t)
		})
	}
}

func TestErrorOfTheHandlerIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	own := errors.New("out of stock")
	_, duplicate, err := s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
		return inbox.Effect{Record: []byte("record"), Discard: "too old"}, cmp.Or(effect(ctx), own)
	})
	if duplicate || err != own { //nolint:errorlint // that and no other
		t.Errorf("got duplicate %v, error %v, want %q", duplicate, err, own)
	}
	s.mustProcess(t)
}

func TestPanicOfTheHandlerGoesOn(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _, _ = s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
			if err := effect(ctx); err != nil {
				t.Error(err)
			}
			panic("boom")
		})
	}()
	s.mustProcess(t)
}

// The transaction ends with the context of the delivery: no one else ended it.
func TestContextThatEndsInTheHandlerIsThatError(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]inbox.Effect{"nothing": {}, "a record": {Record: []byte("record")}} {
		t.Run("for a handler that leaves "+name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, nil)
			ctx, cancel := context.WithCancel(delivery.WithGrace(t.Context(), -1))
			defer cancel()
			_, duplicate, err := s.deliver(ctx, func(ctx context.Context) (inbox.Effect, error) {
				if err := effect(ctx); err != nil {
					return inbox.Effect{}, err
				}
				cancel()
				<-ctx.Done()
				return left, nil
			})
			if duplicate || !errors.Is(err, context.Canceled) || errors.Is(err, inbox.ErrTxEnded) {
				t.Errorf("got duplicate %v, error %v, want %q", duplicate, err, context.Canceled)
			}
			s.mustProcess(t)
		})
	}
}

// A router that closes cancels its messages, and the handler is to finish.
func TestCancelledDeliveryCommitsWithinTheGracePeriod(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, duplicate, err := s.deliver(ctx, func(ctx context.Context) (inbox.Effect, error) {
		cancel()
		return inbox.Effect{Record: []byte("record")}, effect(ctx)
	})
	if err != nil || duplicate {
		t.Fatalf("got duplicate %v, error %v", duplicate, err)
	}
	if e, duplicate, err := s.deliver(t.Context(), mustNotRun(t)); err != nil || !duplicate || string(e.Record) != "record" {
		t.Errorf("got %+v, duplicate %v, error %v", e, duplicate, err)
	}
	if n := s.count(t, "effects"); n != 1 {
		t.Errorf("there are %d effects, want 1", n)
	}
}

func TestDiscardKeepsTheKeyAndTheReasonOnly(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	e, duplicate, err := s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
		return inbox.Effect{Record: []byte("record"), Result: []byte("result"), Discard: "too old"}, effect(ctx)
	})
	if err != nil || duplicate || e.Discard != "too old" || e.Record != nil || e.Result != nil {
		t.Fatalf("got %+v, duplicate %v, error %v", e, duplicate, err)
	}
	e, duplicate, err = s.deliver(t.Context(), mustNotRun(t))
	if err != nil || !duplicate || e.Discard != "too old" || e.Record != nil || e.Result != nil {
		t.Errorf("got %+v, duplicate %v, error %v", e, duplicate, err)
	}
	if n := s.count(t, "effects"); n > 0 {
		t.Errorf("%d effects are left", n)
	}
	if n := s.count(t, "inbox_messages WHERE outcome = 'discarded: too old' AND result IS NULL AND produced IS NULL"); n != 1 {
		t.Errorf("the table has %d such rows, want 1", n)
	}
}
