package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqltest"
	"github.com/watermill-inbox/inbox/testutil"
)

// TestKilledSession ends the session of a delivery from outside, while its handler
// runs and while it commits. What became of the commit only the next delivery knows.
func TestKilledSession(t *testing.T) {
	t.Parallel()
	databases := andRotating(onServers())
	databases["MariaDB"] = func(t *testing.T) sqltest.Database {
		t.Helper()

		return mariadb(t, func(c *mysql.Config) { c.Logger = &mysql.NopLogger{} }) // it reports each killed session
	}
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			self, kill := "SELECT pg_backend_pid()", "SELECT pg_terminate_backend($1)"
			if place.Dialect == inboxsql.MySQL {
				self, kill = "SELECT CONNECTION_ID()", "KILL ?"
			}
			in := place.Harness().Open(t, testutil.Options{})
			killer := place.Place(t)()
			end := func(ctx context.Context) (func() error, error) {
				var id int64
				if err := inbox.MustTx[*sql.Tx](ctx).QueryRowContext(ctx, self).Scan(&id); err != nil {
					return nil, err
				}
				return func() error {
					_, err := killer.ExecContext(context.WithoutCancel(ctx), kill, id)
					return err
				}, nil
			}
			writes := func(ctx context.Context) (inbox.Effect, error) {
				return inbox.Effect{Record: []byte("record")}, in.Write(ctx, "effect")
			}
			_, _, err := in.Store.Once(t.Context(), d("in the handler"), func(ctx context.Context) (inbox.Effect, error) {
				now, err := end(ctx)
				if err != nil {
					return inbox.Effect{}, err
				}
				return inbox.Effect{}, errors.Join(in.Write(ctx, "effect"), now())
			})
			if err == nil {
				t.Error("a delivery whose session was killed was committed")
			}
			if n := in.Effects("effect"); n != 0 {
				t.Fatalf("got %d effects of a killed session", n)
			}
			if _, duplicate, err := redeliver(t, in, d("in the handler"), writes); duplicate || err != nil {
				t.Fatalf("got duplicate %v, error %v, want a first delivery", duplicate, err)
			}
			for i := range 20 {
				killed := make(chan error, 1)
				id := d(fmt.Sprintf("in the commit %d", i))
				_, _, err := in.Store.Once(t.Context(), id, func(ctx context.Context) (inbox.Effect, error) {
					now, err := end(ctx)
					if err != nil {
						return inbox.Effect{}, err
					}
					go func() { killed <- now() }()
					return writes(ctx)
				})
				if late := <-killed; late != nil {
					t.Logf("the session had ended: %v", late)
				}
				e, duplicate, next := redeliver(t, in, id, writes)
				if next != nil {
					t.Fatalf("the deliveries after the killed one: %v", next)
				}
				if err == nil && !duplicate {
					t.Error("a delivery that was committed is not known")
				}
				if string(e.Record) != "record" {
					t.Errorf("got record %q", e.Record)
				}
			}
			if n := in.Effects("effect"); n != 21 {
				t.Errorf("got %d effects, want 21: one for each message", n)
			}
		})
	}
}

// redeliver delivers as a broker does: until it succeeds. The pool may still have
// killed connections.
func redeliver(t *testing.T, in *testutil.Instance, d inbox.Delivery, h func(context.Context) (inbox.Effect, error)) (e inbox.Entry, duplicate bool, err error) {
	t.Helper()
	for range 10 {
		if e, duplicate, err = in.Store.Once(t.Context(), d, h); err == nil {
			break
		}
	}
	return e, duplicate, err
}
