package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/retention"
)

// sweeps tells what each of many cleaners does.
type sweeps struct {
	told chan sweepOf
}

type sweepOf struct {
	cleaner int
	report  retention.Report
	err     error
}

func (s sweeps) of(ctx context.Context, cleaner int) func(retention.Report, error) {
	return func(r retention.Report, err error) {
		select {
		case s.told <- sweepOf{cleaner, r, err}:
		case <-ctx.Done():
		}
	}
}

// next waits for a sweep that is as wanted.
func (s sweeps) next(t *testing.T, what string, wanted func(sweepOf) bool) sweepOf {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case sweep := <-s.told:
			if sweep.err != nil && !errors.Is(sweep.err, context.Canceled) && !errors.Is(sweep.err, inbox.ErrBusy) {
				t.Fatalf("cleaner %d: %v", sweep.cleaner, sweep.err)
			}
			if wanted(sweep) {
				return sweep
			}
		case <-deadline:
			t.Fatalf("after a minute no sweep %s", what)
		}
	}
}

func TestOneOfEightCleanersWorks(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			s := sweeps{told: make(chan sweepOf)}
			var running sync.WaitGroup
			defer running.Wait()
			stop := map[int]context.CancelFunc{}
			for i := range 8 {
				ctx, cancel := context.WithCancel(t.Context())
				stop[i] = cancel
				defer cancel()
				c := retention.MustNew(k.store(nil), &retention.Config{Interval: 20 * time.Millisecond, OnSweep: s.of(ctx, i)})
				running.Go(func() { c.Run(ctx) })
			}
			works := func(sweep sweepOf) bool { return sweep.err == nil && !sweep.report.Elsewhere }
			worker := s.next(t, "works", works).cleaner

			k.fill(t, "invoices", 50, 8*day)
			idle := map[int]bool{}
			removed := 0
			s.next(t, "shows that all others are idle", func(sweep sweepOf) bool {
				switch {
				case works(sweep) && sweep.cleaner != worker:
					t.Fatalf("cleaner %d works beside %d", sweep.cleaner, worker)
				case works(sweep):
					removed += sweep.report.Removed
				case sweep.report.Elsewhere:
					idle[sweep.cleaner] = true
				}
				return removed == 50 && len(idle) == 7
			})

			// The worker dies: another one takes over when its lease is over, and one only.
			stop[worker]()
			k.fill(t, "invoices", 50, 9*day)
			clear(idle)
			s.next(t, "shows that the lease outlives its owner", func(sweep sweepOf) bool {
				if works(sweep) && sweep.cleaner != worker {
					t.Fatalf("cleaner %d works while %d has the lease", sweep.cleaner, worker)
				}
				idle[sweep.cleaner] = true
				return len(idle) == 8 || (len(idle) == 7 && !idle[worker])
			})
			k.expireLease(t)
			second := s.next(t, "takes over", func(sweep sweepOf) bool { return works(sweep) && sweep.cleaner != worker })
			if second.report.Removed != 50 {
				t.Errorf("the second one removes %d keys, want 50", second.report.Removed)
			}
			for _, cancel := range stop {
				cancel()
			}
		})
	}
}

// Messages come while keys go, those of the old keys among them, and neither side
// sees a deadlock or another error.
func TestCleanerBesideConsumers(t *testing.T) {
	t.Parallel()
	lasts := 5 * time.Second
	if long() {
		lasts = time.Minute
	}
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			var filled, fresh, duplicates, removed atomic.Int64
			for range 4 {
				s := k.store(&inboxsql.Config{Wait: time.Minute})
				running.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						key := inbox.Key{Consumer: "invoices", MessageID: fmt.Sprintf("%p-%d", s, i)}
						if n := filled.Load(); n > 0 && i%2 == 0 {
							age := 8 + rand.Int64N(n) //nolint:gosec // spreads, not a secret
							key = inbox.Key{Consumer: "invoices", Source: "fill", MessageID: fmt.Sprintf("%d-%d", age*24*3600, rand.IntN(500))}
						}
						duplicate, err := deliverAlone(t, s, key) //nolint:contextcheck // the last delivery outlives ctx
						switch {
						case err != nil:
							t.Errorf("a delivery beside the cleaner: %v", err)
							return
						case duplicate:
							duplicates.Add(1)
						default:
							fresh.Add(1)
						}
					}
				})
			}
			c := retention.MustNew(k.store(nil), &retention.Config{
				Interval: 10 * time.Millisecond, Batch: 50, Pause: 5 * time.Millisecond,
				OnSweep: func(r retention.Report, err error) {
					removed.Add(int64(r.Removed))
					if err != nil && ctx.Err() == nil {
						t.Errorf("a sweep beside deliveries: %v", err)
					}
				},
			})
			running.Go(func() { c.Run(ctx) })
			for n := int64(0); ctx.Err() == nil; n++ {
				k.fill(t, "invoices", 500, time.Duration(8+n)*day)
				filled.Store(n + 1)
				for ctx.Err() == nil && removed.Load() < 500*n {
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Millisecond):
					}
				}
			}
			running.Wait()
			t.Logf("%d first deliveries, %d duplicates, %d keys removed", fresh.Load(), duplicates.Load(), removed.Load())
			if fresh.Load() == 0 || duplicates.Load() == 0 || removed.Load() == 0 {
				t.Error("nothing happened side by side")
			}
		})
	}
}

// deliverAlone delivers a key to a handler that does nothing.
func deliverAlone(t *testing.T, s *inboxsql.Store, key inbox.Key) (duplicate bool, err error) {
	t.Helper()
	_, duplicate, err = s.Once(t.Context(), inbox.Delivery{Key: key}, func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil })
	return duplicate, err
}
