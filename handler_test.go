package inbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

func TestSetResult(t *testing.T) {
	t.Parallel()

	t.Run("keeps the last result", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		for _, b := range []string{"first", "second"} {
			if err := inbox.SetResult(ctx, []byte(b)); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, _ := s.Take(); string(got) != "second" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("takes the result back with nil, and tells it from an empty one", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		for _, b := range [][]byte{[]byte("a"), {}} {
			if err := inbox.SetResult(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, _ := s.Take(); got == nil || len(got) > 0 {
			t.Errorf("got %#v, want an empty result", got)
		}
		ctx, s = protected(t)
		for _, b := range [][]byte{[]byte("a"), nil} {
			if err := inbox.SetResult(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, _ := s.Take(); got != nil {
			t.Errorf("got %#v, want none", got)
		}
	})

	t.Run("fails once the handler has returned, though nothing is committed yet", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		s.Take()
		if err := inbox.SetResult(ctx, nil); !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v", err)
		}
		reason := errors.New("too old")
		if err := inbox.Discard(ctx, reason); !errors.Is(err, inbox.ErrTxEnded) || !errors.Is(err, reason) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("fails outside a protected handler", func(t *testing.T) {
		t.Parallel()
		for _, ctx := range []context.Context{
			t.Context(),
			delivery.NewContext(t.Context(), nil),
			inbox.ContextWithTx(t.Context(), &transaction{}),
		} {
			if err := inbox.SetResult(ctx, nil); !errors.Is(err, inbox.ErrNoTx) {
				t.Errorf("got %v, want %q", err, inbox.ErrNoTx)
			}
		}
	})

	t.Run("fails once the delivery is over", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		s.End()
		if err := inbox.SetResult(ctx, []byte("late")); !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v, want %q", err, inbox.ErrTxEnded)
		}
		if got, _, _ := s.Take(); got != nil {
			t.Errorf("got %q, want nothing kept", got)
		}
	})

	t.Run("can be called by several goroutines", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := inbox.SetResult(ctx, []byte("a")); err != nil {
					t.Error(err)
				}
				if err := inbox.Discard(ctx, errTooOld); !errors.Is(err, errTooOld) {
					t.Errorf("got %v, want %q", err, errTooOld)
				}
			})
		}
		wg.Wait()
		if result, discard, _ := s.Take(); string(result) != "a" || discard != "too old" {
			t.Errorf("got %q, %q", result, discard)
		}
	})
}

var errTooOld = errors.New("too old")

func TestDiscard(t *testing.T) {
	t.Parallel()

	t.Run("keeps the reason and returns an error that wraps it", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		err := inbox.Discard(ctx, errTooOld)
		if !errors.Is(err, errTooOld) || errors.Is(err, inbox.ErrNoTx) || errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v, want %q and no other", err, errTooOld)
		}
		mustSay(t, err, "discarded", "too old")
		if _, got, _ := s.Take(); got != "too old" {
			t.Errorf("got the reason %q", got)
		}
	})

	t.Run("keeps the last reason", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		for _, reason := range []error{errTooOld, errors.New("revoked")} {
			if err := inbox.Discard(ctx, reason); !errors.Is(err, reason) {
				t.Fatalf("got %v, want %q", err, reason)
			}
		}
		if _, got, _ := s.Take(); got != "revoked" {
			t.Errorf("got the reason %q", got)
		}
	})

	t.Run("keeps some reason for one without text", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		if err := inbox.Discard(ctx, errors.New("")); err == nil {
			t.Error("got no error")
		}
		if _, got, _ := s.Take(); got == "" {
			t.Error("the delivery is not discarded")
		}
	})

	t.Run("is an error without a reason, and discards nothing", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		if err := inbox.Discard(ctx, nil); err == nil {
			t.Error("got no error")
		}
		if _, got, _ := s.Take(); got != "" {
			t.Errorf("got the reason %q", got)
		}
	})

	t.Run("fails outside a protected handler", func(t *testing.T) {
		t.Parallel()
		if err := inbox.Discard(t.Context(), errTooOld); !errors.Is(err, inbox.ErrNoTx) || !errors.Is(err, errTooOld) {
			t.Errorf("got %v, want %q and %q", err, inbox.ErrNoTx, errTooOld)
		}
	})

	t.Run("fails once the delivery is over", func(t *testing.T) {
		t.Parallel()
		ctx, s := protected(t)
		s.End()
		if err := inbox.Discard(ctx, errTooOld); !errors.Is(err, inbox.ErrTxEnded) || !errors.Is(err, errTooOld) {
			t.Errorf("got %v, want %q and %q", err, inbox.ErrTxEnded, errTooOld)
		}
		if _, got, _ := s.Take(); got != "" {
			t.Errorf("got the reason %q", got)
		}
	})
}

// protected is the context of a handler, and the state of its delivery.
func protected(t *testing.T) (context.Context, *delivery.State) {
	t.Helper()
	s := &delivery.State{}
	return inbox.ContextWithTx(delivery.NewContext(t.Context(), s), &transaction{}), s
}
