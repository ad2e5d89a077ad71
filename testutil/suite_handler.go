package testutil

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func handlerCases() []testCase {
	return []testCase{
		{name: "rule 11: the transaction is found by each type that the store offers", run: handlerHandles},
		{name: "rule 11: a wrong type says what is offered", run: handlerWrongHandle},
		{name: "rule 11: a transaction in a foreign context is never joined", needs: []Ability{CanOverlap}, run: handlerForeignTx},
		{name: "rule 12: the handler's error rolls back and is returned as it is", run: handlerError},
		{name: "rule 12: a panic rolls back and goes on", run: handlerPanic},
		{name: "rule 12: Goexit rolls back and goes on", run: handlerGoexit},
		{name: "rule 8: after the handler ran nothing is tried again", run: handlerOnce},
	}
}

func handlerHandles(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for name, lookUp := range h.Handles {
		if err := lookUp(t.Context()); !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("%s outside a delivery: got %v, want %q", name, err, inbox.ErrNoTx)
		}
	}
	deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
		for name, lookUp := range h.Handles {
			if err := lookUp(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return inbox.Effect{}, nil
	}).mustProcess(t)
}

func handlerWrongHandle(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
		_, err := inbox.Tx[*gate](ctx)
		if !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("got %v, want %q", err, inbox.ErrNoTx)
			return inbox.Effect{}, nil
		}
		named := func(name string) bool { return strings.Contains(err.Error(), name) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(h.Handles)), named) {
			t.Errorf("error %q names none of the types that the store offers", err)
		}
		return inbox.Effect{}, nil
	}).mustProcess(t)
}

// handlerForeignTx delivers another message with the context of a handler: its
// transaction must be its own.
func handlerForeignTx(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	other := in.Again()
	deliver(t.Context(), in.Store, keyOf("outer"), func(ctx context.Context) (inbox.Effect, error) {
		if err := in.Write(ctx, "outer"); err != nil {
			return inbox.Effect{}, err
		}
		inner := deliver(ctx, other, keyOf("inner"), in.writes("inner"))
		if inner.err != nil {
			return inbox.Effect{}, inner.err
		}
		return inbox.Effect{}, errHandler
	}).mustFail(t, errHandler)
	in.mustHave(t, 0, "outer")
	in.mustHave(t, 1, "inner")
	deliver(t.Context(), in.Store, keyOf("inner"), in.writes("inner")).mustDuplicate(t)
}

// odd is an error with a value that a careless comparison would trip over.
type odd struct{ parts []string }

func (e *odd) Error() string { return strings.Join(e.parts, " ") }

func handlerError(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for _, own := range []error{errHandler, &odd{parts: []string{"no", "stock"}}, context.Canceled, inbox.ErrInFlight, inbox.ErrBusy} {
		a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect").then(own))
		if a.err != own || a.duplicate || !a.ran { //nolint:errorlint // it must be that error and no other
			t.Fatalf("got %s, want the handler's error %q as it is", a, own)
		}
		in.mustHave(t, 0, "effect")
		in.mustKeep(t, 0)
	}
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	in.mustHave(t, 1, "effect")
}

func handlerPanic(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	own := &odd{parts: []string{"no", "paper"}}
	got := func() (panicked any) {
		defer func() { panicked = recover() }()
		a := deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
			if err := in.Write(ctx, "effect"); err != nil {
				return inbox.Effect{}, err
			}
			panic(own)
		})
		t.Errorf("got %s, want the handler's panic", a)
		return nil
	}()
	if got != own {
		t.Fatalf("got panic %v, want the handler's %v", got, own)
	}
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	in.mustHave(t, 1, "effect")
}

func handlerGoexit(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	returned := false
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
			if err := in.Write(ctx, "effect"); err != nil {
				return inbox.Effect{}, err
			}
			runtime.Goexit()
			return inbox.Effect{}, nil
		})
		returned = true
	}()
	await(t, gone, "the end of the goroutine")
	if returned {
		t.Error("the store returned, although the handler ended its goroutine")
	}
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	in.mustHave(t, 1, "effect")
}

// retryable reads to a store like an error that it tries the claim again for.
type retryable struct{}

func (retryable) Error() string    { return "deadlock, serialization failure, busy" }
func (retryable) SQLState() string { return "40001" }
func (retryable) Code() int        { return 5 }

func handlerOnce(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	runs := 0
	a := deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
		runs++
		if err := in.Write(ctx, "effect"); err != nil {
			return inbox.Effect{}, err
		}
		return inbox.Effect{}, retryable{}
	})
	a.mustFail(t, retryable{})
	if runs != 1 {
		t.Errorf("the handler ran %d times in one delivery", runs)
	}
	in.mustHave(t, 0, "effect")
}
