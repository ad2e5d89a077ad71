package testutil

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
)

func claimCases() []testCase {
	return []testCase{
		{name: "rule 4: the first delivery runs the handler once, and commits its effects with the key", run: claimFirst},
		{name: "rule 4: the claim is made before the handler runs", run: claimBeforeHandler},
		{name: "rule 4: a unique violation in the handler's own table is the handler's error", run: claimForeignViolation},
		{name: "rule 4: an error of the handler that reads like a known key is the handler's error", run: claimErrorText},
		{name: "rule 5: zero rows and no row is claimed again", needs: []Ability{CanSwallow}, run: claimAgain},
		{name: "rule 5: zero rows and no row, again and again, is an error that names the causes", needs: []Ability{CanSwallow}, run: claimUnclear},
		{name: "rule 5: a key that was removed is new again", run: claimRemoved},
		{name: "rule 10: a delivery holds one connection, and gives it back", run: claimOneConnection},
	}
}

func claimFirst(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	a.mustProcess(t)
	if a.entry.Key != keyOf("1") || a.entry.Age != 0 || !a.entry.ProcessedAt.IsZero() {
		t.Errorf("got the entry %+v for a first delivery", a.entry)
	}
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 1)
	// Another process knows it too.
	deliver(t.Context(), in.Again(), keyOf("1"), in.writes("effect")).mustDuplicate(t)
	in.mustHave(t, 1, "effect")
}

func claimBeforeHandler(t *testing.T, h Harness) {
	in := h.open(t, Options{Wait: time.Second})
	second := in.Again()
	g := newGate(t)
	first := async(func() answer {
		return deliver(t.Context(), in.Store, keyOf("1"), g.before(in.writes("effect")))
	})
	await(t, g.entered, "the first delivery's handler")
	// It must give up by itself; the deadline is for a pool of one.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	a := deliver(ctx, second, keyOf("1"), in.writes("effect"))
	if a.ran || a.err == nil {
		t.Errorf("the second delivery of a key in flight: got %s, want an error and no handler", a)
	}
	g.open()
	await(t, first, "the first delivery").mustProcess(t)
	in.mustHave(t, 1, "effect")
}

func claimForeignViolation(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	var own error
	a := deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
		if err := in.Write(ctx, "effect"); err != nil {
			return inbox.Effect{}, err
		}
		own = in.Violate(ctx)
		return inbox.Effect{}, own
	})
	if own == nil {
		t.Fatal("Instance.Violate returned no error")
	}
	if a.duplicate || a.err != own { //nolint:errorlint // it must be that error and no other
		t.Fatalf("got %s, want the handler's own error %q", a, own)
	}
	in.mustHave(t, 0, "effect")
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	in.mustHave(t, 1, "effect")
}

func claimErrorText(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for _, text := range []string{
		`ERROR: duplicate key value violates unique constraint "inbox_messages_pkey" (SQLSTATE 23505)`,
		`Error 1062 (23000): Duplicate entry 'invoices--1' for key 'PRIMARY'`,
		`constraint failed: UNIQUE constraint failed: inbox_messages.message_id (1555)`,
		"duplicate", "discarded", "database is locked (5) (SQLITE_BUSY)",
	} {
		own := errors.New(text)
		a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect").then(own))
		if a.duplicate || a.err != own { //nolint:errorlint // it must be that error and no other
			t.Fatalf("got %s, want the handler's own error %q", a, own)
		}
		in.mustHave(t, 0, "effect")
		in.mustKeep(t, 0)
	}
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
}

func claimAgain(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	in.swallow(t, 1)
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 1)
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustDuplicate(t)
}

func claimUnclear(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	in.swallow(t, -1)
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	if a.err == nil || a.duplicate || a.ran {
		t.Fatalf("got %s, want an error and no handler", a)
	}
	for _, cause := range []string{"trigger", "CHECK", "row security"} {
		if !strings.Contains(a.err.Error(), cause) {
			t.Errorf("error %q does not name %s", a.err, cause)
		}
	}
	var failed *inbox.StoreError
	if !errors.As(a.err, &failed) || failed.Op != inbox.OpClaim || failed.Key != keyOf("1") {
		t.Errorf("got error %#v, want a StoreError of the claim with its key", a.err)
	}
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 0)
}

func (in *Instance) swallow(t *testing.T, inserts int) {
	t.Helper()
	if in.Swallow == nil {
		t.Fatalf("Instance.Swallow is nil, and Harness.Lacks does not name CanSwallow (%s)", CanSwallow)
	}
	in.Swallow(inserts)
}

func claimRemoved(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	deliver(t.Context(), in.Store, keyOf("2"), in.writes("other")).mustProcess(t)
	in.Remove(keyOf("1"))
	in.mustKeep(t, 1)
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	in.mustHave(t, 2, "effect")
	deliver(t.Context(), in.Store, keyOf("2"), in.writes("other")).mustDuplicate(t)
}

func claimOneConnection(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	inUse := -1
	a := deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
		if in.InUse != nil {
			inUse = in.InUse()
		}
		return inbox.Effect{}, in.Write(ctx, "effect")
	})
	a.mustProcess(t)
	if in.InUse == nil {
		t.Log("the store has no pool")
		return
	}
	if inUse != 1 {
		t.Errorf("%d connections in use while the handler ran, want 1", inUse)
	}
	if n := in.InUse(); n != 0 {
		t.Errorf("%d connections in use after the delivery, want 0", n)
	}
}
