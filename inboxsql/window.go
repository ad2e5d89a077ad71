package inboxsql

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/watermill-inbox/inbox"
)

// Window implements [inbox.Windowed].
func (s *Store) Window(consumer string) time.Duration { return s.cfg.window(consumer) }

// window returns zero for a consumer whose keys are kept for ever.
func (c Config) window(consumer string) time.Duration {
	w, ok := c.Windows[consumer]
	switch {
	case !ok:
		w = c.Window
	case w == 0:
		w = inbox.DefaultWindow
	}
	return max(w, 0)
}

func (c Config) validateWindows() []error {
	var errs []error
	if c.MaxRedeliveryAge < 0 {
		errs = append(errs, fmt.Errorf("Config.MaxRedeliveryAge is %s", c.MaxRedeliveryAge))
	}
	check := func(field string, window time.Duration) {
		if window > 0 && window < c.MaxRedeliveryAge {
			errs = append(errs, fmt.Errorf("%s is %s, but messages may be delivered up to %s after they were sent (Config.MaxRedeliveryAge): one that comes after its key was removed would be processed twice; make the window longer, or the broker's retention shorter", field, window, c.MaxRedeliveryAge))
		}
	}
	check("Config.Window", max(c.Window, 0))
	for _, consumer := range slices.Sorted(maps.Keys(c.Windows)) {
		if consumer == "" {
			errs = append(errs, errors.New("Config.Windows has a window for a consumer without a name"))
		}
		check(fmt.Sprintf("Config.Windows[%q]", consumer), c.window(consumer))
	}
	return errs
}
