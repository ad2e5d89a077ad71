package testutil

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
)

// slack is what a machine under load may add to a bound.
const slack = 10 * time.Second

func inFlightCases() []testCase {
	return []testCase{
		{name: "rule 7: a copy in flight is waited for, then known", run: inFlightCommits},
		{name: "rule 7: a copy in flight is waited for, then processed if the other failed", run: inFlightFails},
		{name: "rule 7: the wait for a copy in flight is bounded", needs: []Ability{CanBound}, run: inFlightBound},
		{name: "rule 7: without a wait a copy in flight is answered at once", needs: []Ability{CanBound}, run: inFlightNoWait},
		{name: "rule 7: a delivery that gave up has left nothing behind", needs: []Ability{CanBound}, run: inFlightGaveUp},
	}
}

// waiting starts a delivery of key 1 that is held, and then a second one, and
// lets the first go on when the second is on its way.
func waiting(t *testing.T, in *Instance, first, second handler) (a, b answer) {
	t.Helper()
	other := in.Again()
	g := newGate(t)
	one := async(func() answer { return deliver(t.Context(), in.Store, keyOf("1"), g.before(first)) })
	await(t, g.entered, "the first delivery's handler")
	started := make(chan struct{})
	two := async(func() answer {
		close(started)
		return deliver(t.Context(), other, keyOf("1"), second)
	})
	await(t, started, "the second delivery")
	g.open()
	return await(t, one, "the first delivery"), await(t, two, "the second delivery")
}

func inFlightCommits(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	a, b := waiting(t, in, in.writes("effect"), in.writes("effect"))
	a.mustProcess(t)
	b.mustDuplicate(t)
	in.mustHave(t, 1, "effect")
}

func inFlightFails(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	a, b := waiting(t, in, in.writes("effect").then(errHandler), in.writes("effect"))
	a.mustFail(t, errHandler)
	b.mustProcess(t)
	in.mustHave(t, 1, "effect")
}

// stillHeld delivers key 1 while another delivery holds it to the end.
func stillHeld(t *testing.T, in *Instance) (a answer, took time.Duration) {
	t.Helper()
	other := in.Again()
	g := newGate(t)
	one := async(func() answer {
		return deliver(t.Context(), in.Store, keyOf("1"), g.before(in.writes("effect")))
	})
	await(t, g.entered, "the first delivery's handler")
	start := time.Now()
	a = await(t, async(func() answer {
		return deliver(t.Context(), other, keyOf("1"), in.writes("effect"))
	}), "the bounded wait")
	took = time.Since(start)
	g.open()
	await(t, one, "the first delivery").mustProcess(t)
	in.mustHave(t, 1, "effect")
	return a, took
}

func inFlightBound(t *testing.T, h Harness) {
	const wait = time.Second
	in := h.open(t, Options{Wait: wait})
	a, took := stillHeld(t, in)
	h.mustBeInFlight(t, a)
	if took < wait/2 || took > wait+slack {
		t.Errorf("gave up after %s, want about %s", took, wait)
	}
}

func inFlightNoWait(t *testing.T, h Harness) {
	in := h.open(t, Options{Wait: -1})
	a, took := stillHeld(t, in)
	h.mustBeInFlight(t, a)
	if took > slack/2 {
		t.Errorf("answered after %s, want at once", took)
	}
}

func (h Harness) mustBeInFlight(t *testing.T, a answer) {
	t.Helper()
	want := inbox.ErrInFlight
	if _, lacks := h.Lacks[CanTellInFlight]; lacks {
		want = inbox.ErrBusy
	}
	a.mustFail(t, want)
	if a.ran {
		t.Errorf("got %s, want no handler", a)
	}
	var failed *inbox.StoreError
	if !errors.As(a.err, &failed) || failed.Key != keyOf("1") {
		t.Errorf("got error %#v, want a StoreError with its key", a.err)
	}
	if inbox.Permanent(a.err) {
		t.Errorf("error %q is permanent, but the next delivery may succeed", a.err)
	}
}

func inFlightGaveUp(t *testing.T, h Harness) {
	in := h.open(t, Options{Wait: -1})
	a, _ := stillHeld(t, in)
	h.mustBeInFlight(t, a)
	deliver(t.Context(), in.Again(), keyOf("1"), in.writes("effect")).mustDuplicate(t)
	other := deliver(t.Context(), in.Store, keyOf("2"), func(ctx context.Context) (inbox.Effect, error) {
		return inbox.Effect{}, in.Write(ctx, "other")
	})
	other.mustProcess(t)
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 2)
}
