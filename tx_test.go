package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

// transaction and session stand for the handles of two libraries.
type transaction struct{ name string }

func (tx *transaction) Exec(string) string { return tx.name }

type session struct{ name string }

func (s *session) Exec(string) string { return s.name }

type execer interface{ Exec(string) string }

func TestTx(t *testing.T) {
	t.Parallel()

	t.Run("finds a handle by its type", func(t *testing.T) {
		t.Parallel()
		want := &transaction{}
		got, err := inbox.Tx[*transaction](inbox.ContextWithTx(t.Context(), want, &session{}))
		if err != nil || got != want {
			t.Errorf("got %v, %v", got, err)
		}
	})

	t.Run("finds a handle by an interface that it satisfies", func(t *testing.T) {
		t.Parallel()
		got, err := inbox.Tx[execer](inbox.ContextWithTx(t.Context(), "no execer", &transaction{name: "tx"}))
		if err != nil || got.Exec("") != "tx" {
			t.Errorf("got %v, %v", got, err)
		}
	})

	t.Run("prefers the last handle", func(t *testing.T) {
		t.Parallel()
		got, err := inbox.Tx[execer](inbox.ContextWithTx(t.Context(), &transaction{name: "tx"}, &session{name: "session"}))
		if err != nil || got.Exec("") != "session" {
			t.Errorf("got %v, %v", got, err)
		}
	})

	t.Run("prefers what was deposited later, and still finds the earlier", func(t *testing.T) {
		t.Parallel()
		first, bound := &transaction{name: "first"}, &transaction{name: "bound"}
		ctx := inbox.ContextWithTx(inbox.ContextWithTx(t.Context(), first, &session{name: "session"}), bound)
		if got, err := inbox.Tx[*transaction](ctx); err != nil || got != bound {
			t.Errorf("got %v, %v", got, err)
		}
		if got, err := inbox.Tx[execer](ctx); err != nil || got.Exec("") != "bound" {
			t.Errorf("got %v, %v", got, err)
		}
		if got, err := inbox.Tx[*session](ctx); err != nil || got.name != "session" {
			t.Errorf("got %v, %v", got, err)
		}
	})

	t.Run("asks whether this is the right context if there is no handle", func(t *testing.T) {
		t.Parallel()
		got, err := inbox.Tx[*transaction](t.Context())
		if got != nil || !errors.Is(err, inbox.ErrNoTx) {
			t.Fatalf("got %v, %v, want %q", got, err, inbox.ErrNoTx)
		}
		mustSay(t, err, "*inbox_test.transaction", "middleware", "context of the message")
	})

	t.Run("says what is offered instead of the wrong type, the preferred one first", func(t *testing.T) {
		t.Parallel()
		_, err := inbox.Tx[transaction](inbox.ContextWithTx(t.Context(), &session{}, &transaction{}))
		if !errors.Is(err, inbox.ErrNoTx) {
			t.Fatalf("got %v, want %q", err, inbox.ErrNoTx)
		}
		mustSay(t, err, "no inbox_test.transaction in", "offers *inbox_test.transaction, *inbox_test.session")
	})

	t.Run("names an interface that no handle satisfies", func(t *testing.T) {
		t.Parallel()
		_, err := inbox.Tx[execer](inbox.ContextWithTx(t.Context(), 7))
		if !errors.Is(err, inbox.ErrNoTx) {
			t.Fatalf("got %v, want %q", err, inbox.ErrNoTx)
		}
		mustSay(t, err, "no inbox_test.execer in", "offers int")
	})

	t.Run("dies with the delivery", func(t *testing.T) {
		t.Parallel()
		s := &delivery.State{}
		ctx := inbox.ContextWithTx(delivery.NewContext(t.Context(), s), &transaction{})
		if _, err := inbox.Tx[*transaction](ctx); err != nil {
			t.Fatal(err)
		}
		left, cancel := context.WithCancel(ctx) // what a goroutine of the handler holds
		defer cancel()
		s.End()
		for _, ctx := range []context.Context{ctx, left} {
			if got, err := inbox.Tx[*transaction](ctx); got != nil || !errors.Is(err, inbox.ErrTxEnded) || errors.Is(err, inbox.ErrNoTx) {
				t.Errorf("got %v, %v, want %q", got, err, inbox.ErrTxEnded)
			}
		}
		if _, err := inbox.Tx[*session](ctx); !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("got %v for what never was, want %q", err, inbox.ErrNoTx)
		}
	})
}

func TestMustTx(t *testing.T) {
	t.Parallel()
	want := &transaction{}
	if got := inbox.MustTx[*transaction](inbox.ContextWithTx(t.Context(), want)); got != want {
		t.Errorf("got %v", got)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("panicked with %v, want %q", err, inbox.ErrNoTx)
		}
	}()
	inbox.MustTx[*transaction](t.Context())
	t.Error("no panic without a transaction")
}

//nolint:paralleltest // allocations are counted for the whole process
func TestTxAllocatesNothing(t *testing.T) {
	ctx := handlerContext(t)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := inbox.Tx[*transaction](ctx); err != nil {
			t.Error(err)
		}
		if _, err := inbox.Tx[execer](ctx); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("two look-ups allocate %v times", n)
	}
}

func BenchmarkTx(b *testing.B) {
	ctx := handlerContext(b)
	b.Run("type", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := inbox.Tx[*transaction](ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("interface", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := inbox.Tx[execer](ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// handlerContext is what a handler gets: a deadline around the slot.
func handlerContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx := inbox.ContextWithTx(delivery.NewContext(tb.Context(), &delivery.State{}), &transaction{}, &session{})
	ctx, cancel := context.WithCancel(ctx)
	tb.Cleanup(cancel)
	return ctx
}

func mustSay(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}
