package testutil

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func commitCases() []testCase {
	return []testCase{
		{name: "rule 17: COMMIT answered by a rollback is a failure", needs: []Ability{CanPoison}, run: commitRolledBack},
		{name: "rule 17: a transaction that ended under the handler is found before the commit", needs: []Ability{CanEnd}, run: commitEnded},
		{name: "rule 17: so it is if the handler has a record", needs: []Ability{CanEnd}, run: commitEndedWithRecord},
		{name: "rule 17: if that handler fails, the next delivery is not a duplicate", needs: []Ability{CanEnd}, run: commitEndedAndFailed},
	}
}

func commitRolledBack(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	if in.Poison == nil {
		t.Fatalf("Instance.Poison is nil, and Harness.Lacks does not name CanPoison (%s)", CanPoison)
	}
	for name, effect := range map[string]inbox.Effect{
		"no record": {},
		"a record":  {Record: []byte("record"), Result: []byte("result")},
	} {
		key := keyOf(name)
		a := deliver(t.Context(), in.Store, key, func(ctx context.Context) (inbox.Effect, error) {
			if err := in.Write(ctx, name); err != nil {
				return inbox.Effect{}, err
			}
			return effect, in.Poison(ctx)
		})
		var failed *inbox.StoreError
		if a.duplicate || !errors.As(a.err, &failed) {
			t.Fatalf("%s: got %s, want a StoreError", name, a)
		}
		in.mustHave(t, 0, name)
		deliver(t.Context(), in.Store, key, in.writes(name)).mustProcess(t)
		in.mustHave(t, 1, name)
	}
}

// eachEnd runs a case for each way in which the transaction can end.
func eachEnd(t *testing.T, h Harness, run func(t *testing.T, in *Instance, end End)) {
	t.Helper()
	names := slices.Sorted(maps.Keys(h.open(t, Options{}).Ends))
	if len(names) == 0 {
		t.Fatalf("Instance.Ends is empty, and Harness.Lacks does not name CanEnd (%s)", CanEnd)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := h.open(t, Options{})
			run(t, in, in.Ends[name])
		})
	}
}

// ended delivers key 1 to a handler whose transaction ends in the middle.
func ended(t *testing.T, in *Instance, end End, effect inbox.Effect, own error) answer {
	t.Helper()
	a := deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
		if err := in.Write(ctx, "before"); err != nil {
			return inbox.Effect{}, err
		}
		if err := end.Do(ctx); err != nil {
			t.Errorf("could not end the transaction: %v", err)
		}
		// What comes now may be committed singly; that cannot be prevented.
		_ = in.Write(ctx, "after")
		return effect, own
	})
	if a.err == nil || a.duplicate {
		t.Fatalf("got %s, want %q: the transaction ended under the handler", a, inbox.ErrTxEnded)
	}
	return a
}

func commitEnded(t *testing.T, h Harness) {
	eachEnd(t, h, func(t *testing.T, in *Instance, end End) {
		ended(t, in, end, inbox.Effect{}, nil).mustFail(t, inbox.ErrTxEnded)
		mustDecideNext(t, in, end)
	})
}

func commitEndedWithRecord(t *testing.T, h Harness) {
	eachEnd(t, h, func(t *testing.T, in *Instance, end End) {
		ended(t, in, end, inbox.Effect{Record: []byte("record"), Result: []byte("result")}, nil).mustFail(t, inbox.ErrTxEnded)
		mustDecideNext(t, in, end)
	})
}

// mustDecideNext fails t unless the next delivery leaves the effect of before the
// end committed once.
func mustDecideNext(t *testing.T, in *Instance, end End) {
	t.Helper()
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("before"))
	if end.Commits {
		a.mustDuplicate(t)
	} else {
		a.mustProcess(t)
	}
	in.mustHave(t, 1, "before")
	in.mustKeep(t, 1)
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("before")).mustDuplicate(t)
	deliver(t.Context(), in.Store, keyOf("2"), in.writes("other")).mustProcess(t)
}

func commitEndedAndFailed(t *testing.T, h Harness) {
	eachEnd(t, h, func(t *testing.T, in *Instance, end End) {
		a := ended(t, in, end, inbox.Effect{}, errHandler)
		a.mustFail(t, errHandler)
		if end.Commits {
			a.mustFail(t, inbox.ErrTxEnded)
		}
		deliver(t.Context(), in.Store, keyOf("1"), in.writes("again")).mustProcess(t)
		in.mustHave(t, 1, "again")
		in.mustKeep(t, 1)
	})
}
