package retention_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/retention"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	t.Run("removes all, batch by batch, with a pause after each", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{keys: 2500}
			r, err := retention.MustNew(f, nil).Sweep(t.Context())
			if err != nil || r.Removed != 2500 || r.Batches != 3 || !r.Done || r.Elsewhere || r.Duration != 200*time.Millisecond {
				t.Errorf("got %+v, error %v", r, err)
			}
			if f.batches[0].From != (inbox.Position{}) || f.batches[2].From.After != ".." {
				t.Errorf("the batches do not go on where the one before ended: %+v", f.batches)
			}
			if f.batches[0].Owner == "" || f.batches[0].Owner != f.batches[2].Owner || f.batches[0].All {
				t.Errorf("got %+v", f.batches)
			}
		})
	})
	t.Run("of other namespaces only if told so", func(t *testing.T) {
		t.Parallel()
		f := &fake{}
		if _, err := retention.MustNew(f, &retention.Config{All: true}).Sweep(t.Context()); err != nil || !f.batches[0].All {
			t.Errorf("got %+v, error %v", f.batches, err)
		}
	})
	t.Run("batches grow where there is much to do and they are fast", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{keys: 400_000, takes: 20 * time.Millisecond}
			if _, err := retention.MustNew(f, nil).Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := slices.Compact(f.sizes()); !slices.Equal(got, []int{1000, 2000, 4000, 5000}) {
				t.Errorf("got %d", got)
			}
		})
	})
	t.Run("batches shrink where they are slow", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{keys: 2500, takes: 150 * time.Millisecond}
			if _, err := retention.MustNew(f, nil).Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := f.sizes()[:8]; !slices.Equal(got, []int{1000, 500, 250, 125, 62, 31, 15, 10}) {
				t.Errorf("got %d", got)
			}
		})
	})
	t.Run("a deadlock makes the batch smaller, and is not shown", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{keys: 100, fails: func(call int, _ inbox.Batch) error {
				if call < 2 {
					return &inbox.StoreError{Op: inbox.OpSweep, Err: inbox.ErrBusy}
				}
				return nil
			}}
			r, err := retention.MustNew(f, nil).Sweep(t.Context())
			if err != nil || r.Removed != 100 || !slices.Equal(f.sizes(), []int{1000, 500, 250}) {
				t.Errorf("got %+v of %d, error %v", r, f.sizes(), err)
			}
		})
	})
	t.Run("so does a batch that takes longer than it may", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{keys: 100, takes: 2 * time.Second}
			_, err := retention.MustNew(f, &retention.Config{BatchTimeout: time.Second}).Sweep(t.Context())
			if !errors.Is(err, context.DeadlineExceeded) || len(f.batches) != 6 {
				t.Errorf("got %v after %d batches", err, len(f.batches))
			}
		})
	})
	t.Run("another failure ends it", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("the disk is full")
		f := &fake{keys: 100, fails: func(int, inbox.Batch) error { return broken }}
		if r, err := retention.MustNew(f, nil).Sweep(t.Context()); !errors.Is(err, broken) || r.Done || len(f.batches) != 1 {
			t.Errorf("got %+v, error %v", r, err)
		}
	})
	t.Run("is over when its time is, and that is no error", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{keys: 1_000_000}
			r, err := retention.MustNew(f, &retention.Config{SweepTimeout: time.Second}).Sweep(t.Context())
			if err != nil || r.Done || r.Removed == 0 || r.Duration != time.Second {
				t.Errorf("got %+v, error %v", r, err)
			}
		})
	})
	t.Run("ends with its context", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			f := &fake{keys: 1_000_000}
			r, err := retention.MustNew(f, nil).Sweep(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || r.Done || r.Removed == 0 {
				t.Errorf("got %+v, error %v", r, err)
			}
		})
	})
	t.Run("leaves it to another process that sweeps", func(t *testing.T) {
		t.Parallel()
		f := &fake{answers: func(int) (inbox.Swept, bool) { return inbox.Swept{Elsewhere: true}, true }}
		if r, err := retention.MustNew(f, nil).Sweep(t.Context()); err != nil || !r.Elsewhere || r.Done || len(f.batches) != 1 {
			t.Errorf("got %+v, error %v", r, err)
		}
	})
	t.Run("is not begun twice at once", func(t *testing.T) {
		t.Parallel()
		f := &fake{called: make(chan struct{}), goOn: make(chan struct{})}
		c := retention.MustNew(f, nil)
		ended := make(chan error, 1)
		go func() {
			_, err := c.Sweep(t.Context())
			ended <- err
		}()
		<-f.called
		if r, err := c.Sweep(t.Context()); err != nil || !r.Elsewhere || r.Done {
			t.Errorf("the second one: got %+v, error %v", r, err)
		}
		close(f.goOn)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("tells its report, and the error", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("the disk is full")
		f := &fake{fails: func(int, inbox.Batch) error { return broken }}
		var got []error
		c := retention.MustNew(f, &retention.Config{OnSweep: func(r retention.Report, err error) { got = append(got, err) }})
		_, _ = c.Sweep(t.Context())
		f.fails = nil
		_, _ = c.Sweep(t.Context())
		if len(got) != 2 || !errors.Is(got[0], broken) || got[1] != nil {
			t.Errorf("got %v", got)
		}
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	// run runs a cleaner for so long, and returns when it called.
	run := func(t *testing.T, f *fake, cfg *retention.Config, d time.Duration) (starts []time.Duration) {
		t.Helper()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		retention.MustNew(f, cfg).Run(ctx)
		for _, at := range f.times {
			starts = append(starts, at.Sub(began))
		}
		return starts
	}
	t.Run("sweeps at its interval, give or take a tenth", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			starts := run(t, &fake{}, nil, 10*time.Minute)
			if len(starts) < 9 || len(starts) > 12 || starts[0] >= time.Minute {
				t.Fatalf("got %s", starts)
			}
			for i, at := range starts[1:] {
				if d := at - starts[i]; d < 54*time.Second || d > 66*time.Second {
					t.Errorf("%s after the one before", d)
				}
			}
		})
	})
	t.Run("processes do not begin together", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			first := map[time.Duration]bool{}
			for range 5 {
				first[run(t, &fake{}, nil, 2*time.Minute)[0]] = true
			}
			if len(first) < 2 {
				t.Errorf("all begin after %v", first)
			}
		})
	})
	t.Run("waits longer and longer after failures, and not at all any more after a success", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{fails: func(call int, _ inbox.Batch) error {
				if call < 12 {
					return errors.New("no connection")
				}
				return nil
			}}
			starts := run(t, f, &retention.Config{Interval: time.Second}, time.Hour)
			want := time.Second
			for i := 1; i <= 12; i++ {
				if d := starts[i] - starts[i-1]; d != want {
					t.Errorf("attempt %d comes %s after the one before, want %s", i, d, want)
				}
				want = min(want*2, 5*time.Minute)
			}
			if d := starts[13] - starts[12]; d > 1100*time.Millisecond {
				t.Errorf("after a success it waits %s", d)
			}
		})
	})
	t.Run("ends with its context in the middle of a batch", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{takes: time.Hour}
			began := time.Now()
			run(t, f, &retention.Config{Interval: time.Millisecond, BatchTimeout: -1, SweepTimeout: -1}, time.Minute)
			if d := time.Since(began); d != time.Minute {
				t.Errorf("it ends after %s", d)
			}
		})
	})
}

func TestNewRefusesAndNamesTheField(t *testing.T) {
	t.Parallel()
	for says, cfg := range map[string]retention.Config{
		"Config.Interval is -1ns": {Interval: -1},
		"Config.Batch is -1":      {Batch: -1},
	} {
		if _, err := retention.New(&fake{}, &cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
	if _, err := retention.New(nil, nil); err == nil {
		t.Error("a nil store is taken")
	}
	defer func() {
		if recover() == nil {
			t.Error("MustNew does not panic")
		}
	}()
	retention.MustNew(nil, nil)
}
