package testutil

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
)

func sweepCases() []testCase {
	needs, singly := []Ability{CanSweep}, []Ability{CanSweep, CanSweepSingly}
	return []testCase{
		{name: "rule 21: a key goes when its window and the skew of clocks are over, not before", needs: singly, run: sweepWindow},
		{name: "rule 21: keys that go together go when the window of the youngest is over, not before", needs: needs, run: sweepTogether},
		{name: "rule 21: the oldest keys go first, a batch at a time", needs: singly, run: sweepBatches},
		{name: "rule 21: a consumer has a window of its own", needs: singly, run: sweepConsumers},
		{name: "rule 21: keys without an end of their window stay", needs: needs, run: sweepForever},
		{name: "rule 21: of several sweepers one works", needs: singly, run: sweepLease},
		{name: "rule 21: a sweep beside deliveries loses and doubles nothing", needs: needs, run: sweepBesideDeliveries},
		{name: "rule 21: a sweep that is cancelled removes nothing, and another one goes on", needs: needs, run: sweepCancelled},
	}
}

// sweeper is the store of in.
func (in *Instance) sweeper(t *testing.T) inbox.Sweeper {
	t.Helper()
	s, ok := in.Store.(inbox.Sweeper)
	if !ok {
		t.Fatalf("store %T is no inbox.Sweeper", in.Store)
	}
	return s
}

// sweepAll sweeps until nothing is left to remove, and returns how many keys went.
func sweepAll(t *testing.T, s inbox.Sweeper, b inbox.Batch) (removed int) {
	t.Helper()
	for range 100 {
		swept, err := s.Sweep(t.Context(), b)
		if err != nil || swept.Elsewhere {
			t.Fatalf("got %+v, error %v", swept, err)
		}
		removed += swept.Removed
		if swept.Done {
			return removed
		}
		b.From = swept.Next
	}
	t.Fatal("the sweep does not come to its end")
	return 0
}

// process processes a key, and has it be received so long ago.
func (in *Instance) process(t *testing.T, key inbox.Key, ago time.Duration) {
	t.Helper()
	deliver(t.Context(), in.Store, key, in.writes(key.MessageID)).mustProcess(t)
	in.Age(key, ago)
}

// mustRemember wants these to be the keys, of those, that are still known.
func (in *Instance) mustRemember(t *testing.T, of []inbox.Key, known ...inbox.Key) {
	t.Helper()
	want := map[inbox.Key]bool{}
	for _, key := range known {
		want[key] = true
	}
	for _, key := range of {
		a := deliver(t.Context(), in.Store, key, func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, errHandler })
		if a.err != nil && !errors.Is(a.err, errHandler) {
			t.Fatal(a.err)
		}
		if a.duplicate != want[key] {
			t.Errorf("%s: known %t, want %t", key, a.duplicate, want[key])
		}
	}
}

func sweepWindow(t *testing.T, h Harness) {
	const window = time.Hour
	in := h.open(t, Options{Window: window})
	s := in.sweeper(t)
	if got := s.Window("invoices"); got != window {
		t.Errorf("the store says that the window is %s, want %s", got, window)
	}
	old := keyOf("old")
	in.process(t, old, window+inbox.ClockSkew+time.Second)
	// A machine that takes longer than the margin has shown nothing, and tries again.
	const margin, attempts = 2 * time.Second, 10
	for attempt := 1; ; attempt++ {
		young := keyOf("young " + strconv.Itoa(attempt))
		in.process(t, young, 0)
		aged := time.Now()
		in.Age(young, window+inbox.ClockSkew-margin)
		sweepAll(t, s, inbox.Batch{Owner: "a", Limit: 10})
		if time.Since(aged) < margin {
			in.mustRemember(t, []inbox.Key{young, old}, young)
			break
		}
		if attempt == attempts {
			t.Fatalf("a sweep takes longer than %s", margin)
		}
	}
	deliver(t.Context(), in.Store, old, in.writes("old")).mustProcess(t)
	in.mustHave(t, 2, "old")
}

// sweepTogether has a younger key come after each step: a store that removes keys
// together does so then.
func sweepTogether(t *testing.T, h Harness) {
	const over = time.Hour + inbox.ClockSkew
	in := h.open(t, Options{Window: time.Hour})
	s := in.sweeper(t)
	old, young, next := keyOf("old"), keyOf("young"), keyOf("next")
	keys := []inbox.Key{old, young, next}
	sweep := func() { sweepAll(t, s, inbox.Batch{Owner: "a", Limit: 10}) }

	in.process(t, old, over-30*time.Second)
	for range 3 {
		sweep()
		in.mustRemember(t, keys, old)
	}
	in.process(t, young, over-30*time.Second)
	for range 3 {
		sweep()
		in.mustRemember(t, keys, old, young)
	}
	in.Age(old, over+time.Second)
	sweep()
	in.mustRemember(t, keys, young)
	in.process(t, next, 0)
	sweep()
	in.mustRemember(t, keys, young, next)
	in.Age(young, over+time.Second)
	deliver(t.Context(), in.Store, old, in.writes("old")).mustProcess(t)
	for range 2 {
		sweep()
	}
	in.mustRemember(t, keys, old, next)
	in.mustHave(t, 2, "old")
}

func sweepBatches(t *testing.T, h Harness) {
	in := h.open(t, Options{Window: time.Hour})
	s := in.sweeper(t)
	keys := make([]inbox.Key, 0, 5)
	for i := range 5 {
		key := keyOf(strconv.Itoa(i))
		keys = append(keys, key)
		in.process(t, key, 10*time.Hour-time.Duration(i)*time.Hour)
	}
	b := inbox.Batch{Owner: "a", Limit: 2}
	for _, left := range [][]inbox.Key{keys[2:], keys[4:], nil} {
		swept, err := s.Sweep(t.Context(), b)
		if err != nil || swept.Elsewhere || swept.Removed > 2 {
			t.Fatalf("got %+v, error %v", swept, err)
		}
		b.From = swept.Next
		in.mustRemember(t, keys, left...)
	}
	if n := sweepAll(t, s, b); n != 0 {
		t.Errorf("%d more keys went", n)
	}
}

func sweepConsumers(t *testing.T, h Harness) {
	in := h.open(t, Options{Window: 2 * time.Hour, Windows: map[string]time.Duration{"hasty": time.Hour, "patient": 3 * time.Hour, "~keeper": -1}})
	s := in.sweeper(t)
	var keys []inbox.Key //nolint:prealloc // a handful
	known := map[string]bool{}
	for _, consumer := range []string{"hasty", "hasty2", "invoices", "patient", "~keeper", "~other", "ü"} {
		for _, ago := range []time.Duration{30 * time.Minute, 90 * time.Minute, 150 * time.Minute, 210 * time.Minute} {
			key := inbox.Key{Consumer: consumer, MessageID: ago.String()}
			keys = append(keys, key)
			in.process(t, key, ago)
			known[key.String()] = s.Window(consumer) == 0 || ago < s.Window(consumer)
		}
	}
	sweepAll(t, s, inbox.Batch{Owner: "a", Limit: 3})
	var left []inbox.Key
	for _, key := range keys {
		if known[key.String()] {
			left = append(left, key)
		}
	}
	in.mustRemember(t, keys, left...)
}

func sweepForever(t *testing.T, h Harness) {
	in := h.open(t, Options{Window: -1})
	s := in.sweeper(t)
	key := keyOf("1")
	in.process(t, key, 10*365*24*time.Hour)
	if n := sweepAll(t, s, inbox.Batch{Owner: "a", Limit: 10}); n != 0 || s.Window("invoices") != 0 {
		t.Errorf("%d keys went, of a window of %s", n, s.Window("invoices"))
	}
	in.mustRemember(t, []inbox.Key{key}, key)
}

func sweepLease(t *testing.T, h Harness) {
	in := h.open(t, Options{Window: time.Hour})
	key := keyOf("1")
	sweepers := []inbox.Sweeper{in.sweeper(t)} //nolint:prealloc // a handful
	for range 3 {
		sweepers = append(sweepers, in.Again().(inbox.Sweeper)) //nolint:forcetypeassert,errcheck // as the first one is
	}
	alone := -1
	for range 2 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		var working []int
		for i, s := range sweepers {
			wg.Go(func() {
				swept, err := s.Sweep(t.Context(), inbox.Batch{Owner: strconv.Itoa(i), Limit: 10})
				switch {
				case errors.Is(err, inbox.ErrBusy): // where there is one writer
				case err != nil:
					t.Error(err)
				case !swept.Elsewhere:
					mu.Lock()
					defer mu.Unlock()
					working = append(working, i)
				}
			})
		}
		wg.Wait()
		if len(working) > 1 || (alone >= 0 && len(working) == 1 && working[0] != alone) {
			t.Fatalf("%v sweep, after %d", working, alone)
		}
		if len(working) == 1 {
			alone = working[0]
		}
	}
	if alone < 0 {
		t.Fatal("no one sweeps")
	}
	in.process(t, key, 2*time.Hour)
	other := sweepers[(alone+1)%len(sweepers)]
	swept, err := other.Sweep(t.Context(), inbox.Batch{Owner: "late", Limit: 10})
	if err != nil || !swept.Elsewhere || swept.Removed != 0 {
		t.Errorf("the other gets %+v, error %v", swept, err)
	}
	in.mustRemember(t, []inbox.Key{key}, key)
	if n := sweepAll(t, sweepers[alone], inbox.Batch{Owner: strconv.Itoa(alone), Limit: 10}); n != 1 {
		t.Errorf("%d keys went, want 1", n)
	}
}

func sweepBesideDeliveries(t *testing.T, h Harness) {
	in := h.open(t, Options{Window: time.Hour})
	s := in.sweeper(t)
	const n = 30
	for i := range n {
		in.process(t, keyOf(strconv.Itoa(i)), 2*time.Hour)
	}
	var wg sync.WaitGroup
	for range 2 {
		store := in.Again()
		wg.Go(func() {
			for i := range n {
				if a := deliver(t.Context(), store, keyOf(strconv.Itoa(i)), in.writes(strconv.Itoa(i))); a.err != nil {
					t.Errorf("delivery %d: %v", i, a.err)
				}
			}
		})
	}
	removed := 0
	b := inbox.Batch{Owner: "a", Limit: 4}
	for range 1000 {
		swept, err := s.Sweep(t.Context(), b)
		if errors.Is(err, inbox.ErrBusy) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		removed += swept.Removed
		if b.From = swept.Next; swept.Done {
			break
		}
	}
	wg.Wait()
	removed += sweepAll(t, s, inbox.Batch{Owner: "a", Limit: 4})
	if _, together := h.Lacks[CanSweepSingly]; together { // a younger key lets the old ones go
		deliver(t.Context(), in.Store, keyOf("younger"), in.writes("younger")).mustProcess(t)
		sweepAll(t, s, inbox.Batch{Owner: "a", Limit: 4})
	} else if removed != n {
		t.Errorf("%d keys went, want %d", removed, n)
	}
	for i := range n {
		deliver(t.Context(), in.Store, keyOf(strconv.Itoa(i)), in.writes(strconv.Itoa(i)))
		in.mustHave(t, 2, strconv.Itoa(i))
	}
}

func sweepCancelled(t *testing.T, h Harness) {
	in := h.open(t, Options{Window: time.Hour})
	s := in.sweeper(t)
	key := keyOf("1")
	in.process(t, key, 2*time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if swept, err := s.Sweep(ctx, inbox.Batch{Owner: "a", Limit: 10}); err == nil {
		t.Errorf("got %+v and no error", swept)
	}
	in.mustRemember(t, []inbox.Key{key}, key)
	n := sweepAll(t, s, inbox.Batch{Owner: "b", Limit: 10})
	if _, together := h.Lacks[CanSweepSingly]; !together && n != 1 {
		t.Errorf("%d keys went, want 1", n)
	}
}
