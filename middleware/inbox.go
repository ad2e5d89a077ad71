package inboxmw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// Inbox protects the handlers of routers: each message is processed once per
// handler for its effects in the store's database. Make one with [New]. It is
// safe for concurrent use, starts no goroutine and has nothing to close.
type Inbox struct {
	store      inbox.Store
	window     func(consumer string) time.Duration // zero: for ever
	defaults   Handler
	handlers   map[string]Handler
	observers  []inbox.Observer
	logger     atomic.Pointer[watermill.LoggerAdapter]
	consumers  consumers
	publishers publishers
}

// New returns an inbox on store. A nil cfg is all defaults. It does no I/O. The
// error names the field of cfg that is wrong; two handlers that end up as one
// consumer are [inbox.ErrConsumer].
func New(store inbox.Store, cfg *Config) (*Inbox, error) {
	if v := reflect.ValueOf(store); store == nil || (v.Kind() == reflect.Pointer && v.IsNil()) {
		return nil, errors.New("inboxmw: the store is nil")
	}
	if !reflect.TypeOf(store).Comparable() {
		return nil, fmt.Errorf("inboxmw: store %T is not comparable: use a pointer", store)
	}
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("inboxmw: %w", err)
	}
	windowed, ok := store.(inbox.Windowed)
	if !ok {
		if err := c.needsWindow(); err != nil {
			return nil, fmt.Errorf("inboxmw: store %T: %w", store, err)
		}
		windowed = forever{}
	}
	in := &Inbox{
		store:     store,
		window:    windowed.Window,
		defaults:  c.Handler.over(defaults()),
		handlers:  maps.Clone(c.Handlers),
		observers: c.Observers,
	}
	if c.Logger != nil {
		in.logger.Store(&c.Logger)
	}
	return in, nil
}

// MustNew is [New] for the wiring of a program. It panics where New fails.
func MustNew(store inbox.Store, cfg *Config) *Inbox {
	in, err := New(store, cfg)
	if err != nil {
		panic(err)
	}
	return in
}

// Middleware protects a handler, for a router's or a handler's AddMiddleware.
// Added twice around one handler, the inner one passes straight through.
func (in *Inbox) Middleware(h message.HandlerFunc) message.HandlerFunc {
	return (&wrapped{in: in, next: h}).handle
}

// With is [Inbox.Middleware] with settings for one handler, for the handler's
// AddMiddleware; zero fields take the values of Config.Handler. It goes with a
// [Inbox.Plugin] of the same inbox, which is inside of it and leaves the handler
// to it. Added after a router's AddMiddleware it would be the inner one, and
// fails with [inbox.ErrNested]: the outer one has begun the delivery with other
// settings. Use Config.Handlers there.
func (in *Inbox) With(h Handler) message.HandlerMiddleware {
	own := h.over(in.defaults)
	return func(next message.HandlerFunc) message.HandlerFunc {
		return (&wrapped{in: in, next: next, own: &own}).handle
	}
}

// Check asks the store what is wrong with its database, see [inbox.Checker]. It
// returns an error that joins what is fatal, and logs the rest. A store that
// cannot check is taken to be right.
func (in *Inbox) Check(ctx context.Context) error {
	checker, ok := in.store.(inbox.Checker)
	if !ok {
		return nil
	}
	findings, err := checker.Check(ctx)
	if err != nil {
		return err
	}
	var fatal []error
	for _, f := range findings {
		if f.Fatal {
			fatal = append(fatal, errors.New(f.String()))
			continue
		}
		in.log().Info("Inbox: "+f.Problem, watermill.LogFields{"remedy": f.Remedy})
	}
	return errors.Join(fatal...)
}

// settings are those of the handler of that name in the router.
func (in *Inbox) settings(name string) Handler {
	h, ok := in.handlers[name]
	if !ok {
		h = in.defaults
		h.Unprotected = h.Unprotected || relays[name]
	}
	h = h.over(in.defaults)
	h.Consumer = cmp.Or(h.Consumer, name)
	return h
}

// relays are handlers of Watermill's own components that pass messages on. An
// inbox on the requeuer would lose the message that fails a second time, as it
// comes with the same UUID.
var relays = map[string]bool{"events_forwarder": true, "requeuer": true} //nolint:gochecknoglobals // constant

func (in *Inbox) log() watermill.LoggerAdapter {
	if l := in.logger.Load(); l != nil {
		return *l
	}
	return watermill.NopLogger{}
}
