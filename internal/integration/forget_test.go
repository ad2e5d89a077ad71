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

// TestForgetBesideADeliveryInFlight looks at the row that a plain DELETE would
// not see.
func TestForgetBesideADeliveryInFlight(t *testing.T) {
	t.Parallel()
	for name, database := range andRotating(onServers()) {
		t.Run(name+" waits for it, and then forgets what it stored", func(t *testing.T) {
			t.Parallel()
			in := database(t).Harness().Open(t, testutil.Options{})
			running, finish, forgotten := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			processed := make(chan error, 1)
			go func() {
				_, _, err := in.Store.Once(t.Context(), d("1"), func(ctx context.Context) (inbox.Effect, error) {
					close(running)
					<-finish
					return inbox.Effect{}, in.Write(ctx, "effect")
				})
				processed <- err
			}()
			<-running
			go func() {
				_, found, err := sqlStore(t, in.Again()).Forget(t.Context(), d("1").Key)
				if err == nil && !found {
					err = errors.New("there was nothing to forget")
				}
				forgotten <- err
			}()
			select {
			case err := <-forgotten:
				t.Fatalf("it did not wait: %v", err)
			case <-time.After(200 * time.Millisecond): // long enough for a DELETE that does not wait
			}
			close(finish)
			if err := errors.Join(<-processed, <-forgotten); err != nil {
				t.Fatal(err)
			}
			if _, found, err := sqlStore(t, in.Store).Lookup(t.Context(), d("1").Key); found || err != nil {
				t.Errorf("got %v, %v", found, err)
			}
		})
		t.Run(name+" gives up after the bounded wait, and has removed nothing", func(t *testing.T) {
			t.Parallel()
			in := database(t).Harness().Open(t, testutil.Options{Wait: -1})
			_, _, err := in.Store.Once(t.Context(), d("1"), func(ctx context.Context) (inbox.Effect, error) {
				_, _, err := sqlStore(t, in.Again()).Forget(context.WithoutCancel(ctx), d("1").Key)
				if !errors.Is(err, inbox.ErrInFlight) {
					t.Errorf("got %v", err)
				}
				return inbox.Effect{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, found, err := sqlStore(t, in.Store).Lookup(t.Context(), d("1").Key); !found || err != nil {
				t.Errorf("got %v, %v", found, err)
			}
		})
	}
}

func sqlStore(t *testing.T, s inbox.Store) *inboxsql.Store {
	t.Helper()
	store, ok := s.(*inboxsql.Store)
	if !ok {
		t.Fatalf("the store is a %T", s)
	}
	return store
}
