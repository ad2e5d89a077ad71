package inboxmw

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// checkTimeout bounds the checks at start.
const checkTimeout = 30 * time.Second

// Plugin adds the inbox to a router, for AddPlugin. When the router runs, and
// before it subscribes to anything, it checks the store and the names in
// Config.Handlers, and adds the middleware innermost, whatever was added before.
// An error aborts the router's Run: what [Inbox.Check] finds fatal, settings for
// a handler that the router does not have, or [inbox.ErrConsumer].
func (in *Inbox) Plugin(r *message.Router) error {
	if logger := r.Logger(); logger != nil && in.logger.Load() == nil {
		in.logger.Store(&logger)
	}
	names := slices.Sorted(maps.Keys(r.Handlers()))
	if err := in.compare(names); err != nil {
		return fmt.Errorf("inboxmw: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	if err := in.Check(ctx); err != nil {
		return fmt.Errorf("inboxmw: %w", err)
	}
	var protected, unprotected []string
	for _, name := range names {
		if in.settings(name).Unprotected {
			unprotected = append(unprotected, name)
		} else {
			protected = append(protected, name)
		}
	}
	in.log().Info("Inbox protects handlers", watermill.LogFields{
		"handlers":    strings.Join(protected, ", "),
		"unprotected": strings.Join(unprotected, ", "),
	})
	r.AddMiddleware(in.Middleware)
	return nil
}

// compare looks for settings that the router's handlers do not bear out.
func (in *Inbox) compare(names []string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(in.handlers)) {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("Config.Handlers has settings for %q, but the router's handlers are %s", name, strings.Join(names, ", ")))
		}
	}
	handlerOf := map[string]string{}
	for _, name := range names {
		h := in.settings(name)
		if h.Unprotected {
			continue
		}
		if other, ok := handlerOf[h.Consumer]; ok {
			errs = append(errs, fmt.Errorf("%w: %q and %q are both consumer %q; give each its own", inbox.ErrConsumer, other, name, h.Consumer))
		}
		handlerOf[h.Consumer] = name
	}
	return errors.Join(errs...)
}
