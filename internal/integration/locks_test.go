package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
	"github.com/watermill-inbox/inbox/internal/sqltest"
	"github.com/watermill-inbox/inbox/testutil"
)

// onServers are the databases whose rows can be locked, by the name of a subtest.
func onServers() map[string]reach {
	return map[string]reach{"PostgreSQL through pgx": throughPgx, "PostgreSQL through pq": throughPq, "MariaDB": onMariaDB}
}

// andRotating adds PostgreSQL with two generations.
func andRotating(all map[string]reach) map[string]reach {
	all["PostgreSQL, rotating"] = rotatingThroughPgx
	return all
}

func d(id string) inbox.Delivery {
	return inbox.Delivery{Key: inbox.Key{Consumer: "invoices", MessageID: id}}
}

// TestLockTimeout looks for the bound of the claim in the handler's own session.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database reach
		query    string
		want     string
	}{
		"PostgreSQL through pgx": {throughPgx, "SHOW lock_timeout", "0"},
		"PostgreSQL through pgx, set by the user": {
			func(t *testing.T) sqltest.Database {
				t.Helper()
				return postgres(t, "pgx", map[string]string{"lock_timeout": "1234"})
			}, "SHOW lock_timeout", "1234ms",
		},
		"PostgreSQL through pq, set by the user": {
			func(t *testing.T) sqltest.Database {
				t.Helper()
				return postgres(t, "postgres", map[string]string{"lock_timeout": "1234"})
			}, "SHOW lock_timeout", "1234ms",
		},
		"PostgreSQL, rotating, set by the user": {
			func(t *testing.T) sqltest.Database {
				t.Helper()
				return rotating(postgres(t, "pgx", map[string]string{"lock_timeout": "1234"}))
			}, "SHOW lock_timeout", "1234ms",
		},
		"MariaDB, set by the user": {
			func(t *testing.T) sqltest.Database {
				t.Helper()

				return mariadb(t, func(c *mysql.Config) { c.Params = map[string]string{"innodb_lock_wait_timeout": "37"} })
			}, "SELECT @@innodb_lock_wait_timeout", "37",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := c.database(t).Harness().Open(t, testutil.Options{Wait: time.Second, Conns: 1})
			mustBe := func(ctx context.Context, when string) {
				var got string
				if err := inbox.MustTx[*sql.Tx](ctx).QueryRowContext(ctx, c.query).Scan(&got); err != nil {
					t.Errorf("%s: %v", when, err)
				}
				if got != c.want {
					t.Errorf("%s the handler has lock timeout %s, want %s", when, got, c.want)
				}
			}
			look := func(id, when string) error {
				_, _, err := in.Store.Once(t.Context(), d(id), func(ctx context.Context) (inbox.Effect, error) {
					mustBe(ctx, when)
					return inbox.Effect{}, nil
				})
				return err
			}
			if err := errors.Join(look("1", "at first"), look("2", "after a delivery"), look("1", ""), look("3", "after a duplicate")); err != nil {
				t.Fatal(err)
			}
			// A delivery that gave up must not leave its bound on the connection either.
			_, _, err := in.Again().Once(t.Context(), d("4"), func(context.Context) (inbox.Effect, error) {
				if err := look("4", ""); !errors.Is(err, inbox.ErrInFlight) {
					t.Errorf("got %v, want %q", err, inbox.ErrInFlight)
				}
				return inbox.Effect{}, nil
			})
			if err = errors.Join(err, look("5", "after ErrInFlight")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRollbackReachesServer locks a row in a delivery that is cancelled: when the
// store has answered, the row must be free.
func TestRollbackReachesServer(t *testing.T) {
	t.Parallel()
	for name, database := range andRotating(onServers()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tables *sqltest.Tables
			place := database(t)
			place.Swallow = func(own *sqltest.Tables, _ int) { tables = own }
			in := place.Harness().Open(t, testutil.Options{})
			in.Swallow(0) // the tables of the instance are what it is given
			lock := "SELECT id FROM " + tables.UniqueTable() + " WHERE id = 'taken' FOR UPDATE"
			ctx, cancel := context.WithCancel(delivery.WithGrace(t.Context(), -1))
			defer cancel()
			_, _, err := in.Store.Once(ctx, d("1"), func(run context.Context) (inbox.Effect, error) {
				if _, err := exec(run, lock); err != nil {
					return inbox.Effect{}, err
				}
				cancel()
				<-run.Done()
				return inbox.Effect{}, nil
			})
			if err == nil {
				t.Fatal("the cancelled delivery was committed")
			}
			if _, err := tables.DB.ExecContext(t.Context(), lock+" NOWAIT"); err != nil {
				t.Errorf("the row is still locked: %v", err)
			}
		})
	}
}
