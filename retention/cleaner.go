package retention

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/watermill-inbox/inbox"
)

// Cleaner removes the keys whose window is over. Make one with [New]. It is safe
// for concurrent use, and starts nothing of itself.
type Cleaner struct {
	store    inbox.Sweeper
	cfg      Config
	owner    string
	logger   atomic.Pointer[watermill.LoggerAdapter]
	sweeping sync.Mutex
}

// New returns a cleaner of the store's table. A nil cfg is all defaults. The error
// names the field of cfg that is wrong.
func New(store inbox.Sweeper, cfg *Config) (*Cleaner, error) {
	if store == nil {
		return nil, errors.New("retention: the store is nil")
	}
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	cleaner := &Cleaner{store: store, cfg: c, owner: watermill.NewUUID()}
	if c.Logger != nil {
		cleaner.logger.Store(&c.Logger)
	}
	return cleaner, nil
}

// MustNew is [New] for the wiring of a program. It panics where New fails.
func MustNew(store inbox.Sweeper, cfg *Config) *Cleaner {
	c, err := New(store, cfg)
	if err != nil {
		panic(err)
	}
	return c
}

// Run sweeps until ctx is done, and then returns; a batch that it is in is rolled
// back. The first sweep comes at a random time within the interval. One that
// fails is reported, and tried again after a second, then after longer and longer
// up to five minutes.
func (c *Cleaner) Run(ctx context.Context) {
	wait := rand.N(c.cfg.Interval) //nolint:gosec // spreads processes; not a secret
	for failures := 0; pause(ctx, wait); {
		if _, err := c.Sweep(ctx); err != nil {
			wait = min(time.Second<<min(failures, 10), longestRetry)
			failures++
			continue
		}
		failures = 0
		wait = c.cfg.Interval*9/10 + rand.N(max(c.cfg.Interval/5, 1)) //nolint:gosec // spreads processes; not a secret
	}
}

// longestRetry bounds the time between two sweeps that fail.
const longestRetry = 5 * time.Minute

// Report is what a sweep did.
type Report struct {
	// Removed counts the keys that were removed, and Batches the transactions. A
	// store may estimate Removed.
	Removed, Batches int

	// Done says that no key is left whose window was over. Otherwise the time was
	// over, ctx done, or Elsewhere.
	Done bool

	// Elsewhere says that another process sweeps, so that this one had nothing to do.
	Elsewhere bool

	Duration time.Duration
}

// Sweep removes all keys whose window is over, batch by batch, as far as the time
// suffices: for those who run it from a schedule of their own. It returns nil if
// another process sweeps, or this one already does. An error is ctx's, or that of
// the database; what was removed before stays so.
func (c *Cleaner) Sweep(ctx context.Context) (Report, error) {
	if !c.sweeping.TryLock() {
		return Report{Elsewhere: true}, nil
	}
	defer c.sweeping.Unlock()
	started := time.Now()
	bounded, cancel := within(ctx, c.cfg.SweepTimeout)
	defer cancel()
	var r Report
	err := c.sweep(bounded, &r)
	if ctx.Err() == nil && bounded.Err() != nil {
		err = nil // the time was over
	}
	r.Duration = time.Since(started)
	c.report(ctx, r, err)
	return r, err
}

func (c *Cleaner) sweep(ctx context.Context, r *Report) error {
	b := inbox.Batch{Owner: c.owner, All: c.cfg.All}
	p := newPace(c.cfg.Batch)
	for {
		b.Limit = p.size
		started := time.Now()
		swept, err := c.batch(ctx, b)
		if err != nil {
			if !p.failed() || ctx.Err() != nil || !passing(err) {
				return err
			}
		} else {
			r.Removed += swept.Removed
			r.Batches++
			if swept.Done || swept.Elsewhere {
				r.Done, r.Elsewhere = swept.Done, swept.Elsewhere
				return nil
			}
			p.removed(time.Since(started))
			b.From = swept.Next
		}
		if !pause(ctx, c.cfg.Pause) {
			return ctx.Err()
		}
	}
}

func (c *Cleaner) batch(ctx context.Context, b inbox.Batch) (inbox.Swept, error) {
	ctx, cancel := within(ctx, c.cfg.BatchTimeout)
	defer cancel()
	return c.store.Sweep(ctx, b)
}

// passing reports whether a smaller batch may succeed where this one failed.
func passing(err error) bool {
	return errors.Is(err, inbox.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

func (c *Cleaner) report(ctx context.Context, r Report, err error) {
	if c.cfg.OnSweep != nil {
		c.cfg.OnSweep(r, err)
	}
	logger := c.logger.Load()
	if logger == nil {
		return
	}
	fields := watermill.LogFields{"removed": r.Removed, "batches": r.Batches, "done": r.Done, "elsewhere": r.Elsewhere, "duration": r.Duration}
	switch {
	case err != nil && ctx.Err() == nil:
		(*logger).Error("Inbox: removing old keys failed", err, fields)
	default:
		(*logger).Debug("Inbox: removed old keys", fields)
	}
}

// within is [context.WithTimeout], where a timeout below zero is none.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// pause reports false if ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
