package testutil_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/testutil"
)

// A test that runs the suite on a store of your own.
func ExampleRunStoreTests() {
	_ = func(t *testing.T) {
		testutil.RunStoreTests(t, testutil.Harness{
			Open: func(t *testing.T, o testutil.Options) *testutil.Instance {
				db := openDatabase(t, o.Conns)
				store := newStore(db, o.Wait)
				return &testutil.Instance{
					Store: store,
					Again: func() inbox.Store { return newStore(db, o.Wait) },
					Write: func(ctx context.Context, id string) error {
						tx, err := inbox.Tx[*sql.Tx](ctx)
						if err != nil {
							return err
						}
						_, err = tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", id)
						return err
					},
					InUse: func() int { return db.Stats().InUse },
					// Violate, Effects, Keys, Remove, Ends.
				}
			},
			Lacks: map[testutil.Ability]string{
				testutil.CanPoison:  "the database commits what a failed statement left",
				testutil.CanSwallow: "the database has no triggers",
			},
			Handles: map[string]func(context.Context) error{
				"*sql.Tx": func(ctx context.Context) error {
					_, err := inbox.Tx[*sql.Tx](ctx)
					return err
				},
			},
		})
	}
	// Output:
}

func openDatabase(*testing.T, int) *sql.DB { return nil }

func newStore(*sql.DB, any) inbox.Store { return nil }
