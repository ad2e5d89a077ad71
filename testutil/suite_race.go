package testutil

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func raceCases() []testCase {
	return []testCase{
		{name: "rule 8: of eight deliveries at once one is processed and seven are duplicates", run: raceCommits},
		{name: "rule 8: of eight deliveries at once, the first fails, one is processed, six are duplicates", run: raceFails},
		{name: "rule 8: deliveries of different keys at once are all processed", run: raceKeys},
		{name: "rule 10: a pool of one works with many deliveries of different keys", run: racePoolOfOne},
		{name: "rule 10: a pool of one works with many deliveries of one key", run: racePoolOfOneKey},
	}
}

// race starts n deliveries at once, by turns on two stores.
func race(t *testing.T, in *Instance, n int, key func(i int) inbox.Key, h func(i int) handler) []answer {
	t.Helper()
	stores := []inbox.Store{in.Store, in.Again()}
	var ready sync.WaitGroup
	ready.Add(n)
	answers := make([]<-chan answer, n)
	for i := range n {
		answers[i] = async(func() answer {
			ready.Done()
			ready.Wait()
			return deliver(t.Context(), stores[i%len(stores)], key(i), h(i))
		})
	}
	got := make([]answer, n)
	for i := range got {
		got[i] = await(t, answers[i], fmt.Sprintf("delivery %d of %d", i+1, n))
	}
	return got
}

// tally counts answers and fails t for an error that is not errHandler.
func tally(t *testing.T, answers []answer) (processed, duplicates, failed int) {
	t.Helper()
	for _, a := range answers {
		switch {
		case a.err == errHandler: //nolint:errorlint // it must be that error and no other
			failed++
		case a.err != nil:
			t.Errorf("got %s", a)
		case a.duplicate:
			duplicates++
		default:
			processed++
		}
	}
	return processed, duplicates, failed
}

const rounds = 3

func raceCommits(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for round := range rounds {
		effect := fmt.Sprintf("effect %d", round)
		answers := race(t, in, 8, sameKey(round), func(int) handler { return in.writes(effect) })
		processed, duplicates, failed := tally(t, answers)
		if processed != 1 || duplicates != 7 || failed != 0 {
			t.Errorf("got %d processed, %d duplicates, %d failed, want 1, 7, 0", processed, duplicates, failed)
		}
		in.mustHave(t, 1, effect)
	}
}

func raceFails(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for round := range rounds {
		effect := fmt.Sprintf("effect %d", round)
		var runs atomic.Int32
		answers := race(t, in, 8, sameKey(round), func(int) handler {
			return func(ctx context.Context) (inbox.Effect, error) {
				if err := in.Write(ctx, effect); err != nil {
					return inbox.Effect{}, err
				}
				if runs.Add(1) == 1 {
					return inbox.Effect{}, errHandler
				}
				return inbox.Effect{}, nil
			}
		})
		processed, duplicates, failed := tally(t, answers)
		if processed != 1 || duplicates != 6 || failed != 1 {
			t.Errorf("got %d processed, %d duplicates, %d failed, want 1, 6, 1", processed, duplicates, failed)
		}
		in.mustHave(t, 1, effect)
	}
}

func sameKey(round int) func(int) inbox.Key {
	return func(int) inbox.Key { return keyOf(fmt.Sprintf("round %d", round)) }
}

func raceKeys(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	const n = 24
	answers := race(t, in, n, eachKey, func(i int) handler { return in.writes(eachKey(i).MessageID) })
	mustAllProcess(t, in, answers)
}

func eachKey(i int) inbox.Key { return keyOf(fmt.Sprintf("key %d", i)) }

func mustAllProcess(t *testing.T, in *Instance, answers []answer) {
	t.Helper()
	processed, duplicates, failed := tally(t, answers)
	if processed != len(answers) {
		t.Fatalf("got %d processed, %d duplicates, %d failed of %d different keys", processed, duplicates, failed, len(answers))
	}
	for i := range answers {
		in.mustHave(t, 1, eachKey(i).MessageID)
	}
	in.mustKeep(t, len(answers))
}

func racePoolOfOne(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	answers := race(t, in, 20, eachKey, func(i int) handler { return in.writes(eachKey(i).MessageID) })
	mustAllProcess(t, in, answers)
}

func racePoolOfOneKey(t *testing.T, h Harness) {
	in := h.open(t, Options{Conns: 1})
	answers := race(t, in, 20, sameKey(0), func(int) handler { return in.writes("effect") })
	processed, duplicates, _ := tally(t, answers)
	if processed != 1 || duplicates != 19 {
		t.Errorf("got %d processed, %d duplicates, want 1, 19", processed, duplicates)
	}
	in.mustHave(t, 1, "effect")
}
