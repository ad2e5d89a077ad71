package retention

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// Defaults of [Config].
const (
	DefaultInterval     = time.Minute
	DefaultBatch        = 1000
	DefaultPause        = 100 * time.Millisecond
	DefaultBatchTimeout = 10 * time.Second
	DefaultSweepTimeout = 10 * time.Minute
)

// Config tunes a [Cleaner]. The zero value of each field is its default. For how
// long keys stay is not set here: the window is the store's.
type Config struct {
	// Interval is the time between two sweeps of Run, give or take a tenth, so that
	// processes which started together do not sweep together. Zero:
	// [DefaultInterval].
	Interval time.Duration

	// Batch is how many keys are removed in one transaction. It shrinks where one
	// takes long or meets a deadlock, and grows up to five times itself where a sweep
	// has much to do. Zero: [DefaultBatch].
	Batch int

	// Pause is the time between two batches. Zero: [DefaultPause]. Negative: none.
	Pause time.Duration

	// BatchTimeout bounds a batch, and with it for how long its locks are held.
	// Zero: [DefaultBatchTimeout]. Negative: no bound.
	BatchTimeout time.Duration

	// SweepTimeout bounds a sweep; the next one goes on from there. Zero:
	// [DefaultSweepTimeout]. Negative: no bound.
	SweepTimeout time.Duration

	// All removes the keys of other namespaces in the same table too, by the windows
	// of this store. Otherwise each service removes its own.
	All bool

	// OnSweep is called after each sweep, also one that failed. It must not block.
	// Nil: nothing.
	OnSweep func(Report, error)

	// Logger gets what a sweep did at debug level, and its failure as an error. Nil:
	// the router's, if the cleaner is added as a plugin; else silent.
	Logger watermill.LoggerAdapter
}

func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, DefaultInterval)
	c.Pause = max(cmp.Or(c.Pause, DefaultPause), 0)
	c.BatchTimeout = cmp.Or(c.BatchTimeout, DefaultBatchTimeout)
	c.SweepTimeout = cmp.Or(c.SweepTimeout, DefaultSweepTimeout)
	c.Batch = cmp.Or(c.Batch, DefaultBatch)
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Interval < 0 {
		errs = append(errs, fmt.Errorf("Config.Interval is %s", c.Interval))
	}
	if c.Batch < 0 {
		errs = append(errs, fmt.Errorf("Config.Batch is %d", c.Batch))
	}
	return errors.Join(errs...)
}
