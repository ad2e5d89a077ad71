package testutil

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

func contextCases() []testCase {
	return []testCase{
		{name: "rule 13: a cancellation does not reach the handler within the grace period", run: contextGrace},
		{name: "rule 13: when the grace period is over, the delivery is rolled back", run: contextGraceOver},
		{name: "rule 13: without a grace period a cancellation rolls back", run: contextNoGrace},
		{name: "rule 13: a deadline stays, and rolls back", run: contextDeadline},
		{name: "rule 13: a context that is done begins nothing", run: contextDone},
		{name: "rule 13: the wait for a connection follows the context", run: contextConnection},
		{name: "rule 13: the values of the context stay", run: contextValues},
		{name: "rule 17: after a cancelled delivery no statement of the handler is committed", run: contextLateWrite},
	}
}

func contextGrace(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	deliver(ctx, in.Store, keyOf("1"), func(run context.Context) (inbox.Effect, error) {
		cancel()
		if err := in.Write(run, "effect"); err != nil {
			return inbox.Effect{}, err
		}
		return inbox.Effect{Record: []byte("record")}, run.Err()
	}).mustProcess(t)
	in.mustHave(t, 1, "effect")
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	a.mustDuplicate(t)
	if string(a.entry.Record) != "record" {
		t.Errorf("got record %q", a.entry.Record)
	}
}

// cancelled delivers key 1 with a grace period to a handler that is cancelled and
// waits for that to reach it, then returns nil as if it had not noticed.
func cancelled(t *testing.T, in *Instance, grace time.Duration) answer {
	t.Helper()
	ctx, cancel := context.WithCancel(delivery.WithGrace(t.Context(), grace))
	defer cancel()
	return await(t, async(func() answer {
		return deliver(ctx, in.Store, keyOf("1"), func(run context.Context) (inbox.Effect, error) {
			if err := in.Write(run, "effect"); err != nil {
				return inbox.Effect{}, err
			}
			cancel()
			<-run.Done()
			return inbox.Effect{}, nil
		})
	}), "the cancelled delivery")
}

func contextGraceOver(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	a := cancelled(t, in, 20*time.Millisecond)
	mustBeRolledBack(t, in, a)
}

func contextNoGrace(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	a := cancelled(t, in, -1)
	mustBeRolledBack(t, in, a)
}

func mustBeRolledBack(t *testing.T, in *Instance, a answer) {
	t.Helper()
	if a.err == nil || a.duplicate {
		t.Fatalf("got %s, want an error: its transaction was cancelled", a)
	}
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	in.mustHave(t, 1, "effect")
}

func contextDeadline(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	// The store learns of the table first, so that this is not a part of the time.
	deliver(t.Context(), in.Store, keyOf("0"), in.writes("effect 0")).mustProcess(t)
	in.Remove(keyOf("0"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	want, _ := ctx.Deadline()
	a := await(t, async(func() answer {
		return deliver(ctx, in.Store, keyOf("1"), func(run context.Context) (inbox.Effect, error) {
			if got, ok := run.Deadline(); !ok || !got.Equal(want) {
				t.Errorf("got deadline %v, %v, want %v", got, ok, want)
			}
			if err := in.Write(run, "effect"); err != nil {
				return inbox.Effect{}, err
			}
			<-run.Done()
			return inbox.Effect{}, nil
		})
	}), "the delivery with a deadline")
	if !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("got %s, want %q", a, context.DeadlineExceeded)
	}
	mustBeRolledBack(t, in, a)
}

func contextDone(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := deliver(ctx, in.Store, keyOf("1"), in.writes("effect"))
	a.mustFail(t, context.Canceled)
	if a.ran {
		t.Errorf("got %s, want no handler", a)
	}
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
}

func contextConnection(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	if in.InUse == nil {
		t.Log("the store has no pool")
		return
	}
	g := newGate(t)
	one := async(func() answer {
		return deliver(t.Context(), in.Store, keyOf("1"), g.before(in.writes("effect")))
	})
	await(t, g.entered, "the first delivery's handler")
	ctx, cancel := context.WithCancel(t.Context())
	two := async(func() answer { return deliver(ctx, in.Store, keyOf("2"), in.writes("other")) })
	cancel()
	a := await(t, two, "the delivery that waits for a connection")
	a.mustFail(t, context.Canceled)
	if a.ran {
		t.Errorf("got %s, want no handler", a)
	}
	g.open()
	await(t, one, "the first delivery").mustProcess(t)
}

func contextValues(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "trace")
	deliver(ctx, in.Store, keyOf("1"), func(run context.Context) (inbox.Effect, error) {
		if got := run.Value(ctxKey{}); got != "trace" {
			t.Errorf("got the value %v", got)
		}
		return inbox.Effect{}, nil
	}).mustProcess(t)
}

// contextLateWrite has a handler that goes on writing after its transaction was
// cancelled, with a context that is not.
func contextLateWrite(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	ctx, cancel := context.WithCancel(delivery.WithGrace(t.Context(), -1))
	defer cancel()
	a := await(t, async(func() answer {
		return deliver(ctx, in.Store, keyOf("1"), func(run context.Context) (inbox.Effect, error) {
			if err := in.Write(run, "effect"); err != nil {
				return inbox.Effect{}, err
			}
			cancel()
			<-run.Done()
			for range 20 {
				_ = in.Write(context.WithoutCancel(run), "late")
			}
			return inbox.Effect{}, nil
		})
	}), "the cancelled delivery")
	in.mustHave(t, 0, "late")
	mustBeRolledBack(t, in, a)
}
