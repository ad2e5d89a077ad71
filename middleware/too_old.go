package inboxmw

import (
	"fmt"
	"time"

	"github.com/watermill-inbox/inbox"
)

// TooOld says what becomes of a message that has no key, and was sent longer ago
// than the store's window. If it was processed before, its key was removed since,
// so no one can tell. A message whose key is still there is a duplicate,
// however old it is; one whose send time is unknown, or in the future, is not
// judged.
//
// The send time is by the producer's clock, and compared with that of this
// process: they may differ by [inbox.ClockSkew].
type TooOld string

const (
	// TooOldProcess processes the message, and sets Event.TooOld.
	TooOldProcess TooOld = "process"

	// TooOldFail fails the message with [inbox.ErrTooOld], which is permanent: it
	// belongs into a poison queue, for someone to decide.
	TooOldFail TooOld = "fail"

	// TooOldDiscard keeps the key with the reason, and acks the message: the handler
	// does not run, now or later.
	TooOldDiscard TooOld = "discard"
)

func (o TooOld) validate(field string) error {
	switch o {
	case "", TooOldProcess, TooOldFail, TooOldDiscard:
		return nil
	}
	return fmt.Errorf("%s.TooOld is %q; it is TooOldProcess, TooOldFail or TooOldDiscard", field, string(o))
}

// needsWindow returns an error if a setting has no meaning for a store that says
// nothing of its window.
func (c Config) needsWindow() error {
	if o := c.Handler.TooOld; o != "" && o != TooOldProcess {
		return fmt.Errorf("Config.Handler.TooOld is %q, but the store does not say what its window is (inbox.Windowed)", string(o))
	}
	for name, h := range c.Handlers {
		if o := h.TooOld; o != "" && o != TooOldProcess {
			return fmt.Errorf("Config.Handlers[%q].TooOld is %q, but the store does not say what its window is (inbox.Windowed)", name, string(o))
		}
	}
	return nil
}

// forever is the window of a store that says nothing of it.
type forever struct{}

func (forever) Window(string) time.Duration { return 0 }

// late returns a [tooOldError] if the message was sent before the window. It is for a
// message whose key is new: a known one is a duplicate whatever its age is.
func (r *run) late() error {
	window := r.in.window(r.p.Consumer)
	if window <= 0 || r.delivery.SentAt.IsZero() {
		return nil
	}
	age := time.Since(r.delivery.SentAt)
	if age <= window {
		return nil
	}
	return tooOldError{key: r.delivery.Key, age: age, window: window}
}

type tooOldError struct {
	key         inbox.Key
	age, window time.Duration
}

func (e tooOldError) Error() string {
	return fmt.Sprintf("%v: %s was sent %s ago, keys are kept for %s", inbox.ErrTooOld, e.key, e.age.Round(time.Second), e.window)
}

func (e tooOldError) Is(target error) bool { return target == inbox.ErrTooOld }

func (e tooOldError) Permanent() bool { return true }
