package inboxmw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// DefaultMaxRecord is how large the record of a delivery and its result may be
// together, in bytes. Even if each byte has to be escaped, as interpolateParams may,
// it stays below the packet of 16 MB that MariaDB accepts by default.
const DefaultMaxRecord = 4 << 20

// Config configures an [Inbox]. The zero value of each field is its default.
type Config struct {
	// Handler holds the settings of all handlers. Consumer must be empty here.
	Handler Handler

	// Handlers holds the settings of single handlers, by the name they have in
	// the router. A zero field takes the value of Handler, but for Unprotected
	// and DropUnroutable, which count as they are.
	Handlers map[string]Handler

	// Observers are told the start of each delivery in this order, and its end in
	// reverse.
	Observers []inbox.Observer

	// Logger takes what no error can carry. Nil: the router's, if the inbox is
	// added as a plugin; else silent. A duplicate is logged at debug level. An
	// Error means that a message or an effect may be lost or doubled.
	Logger watermill.LoggerAdapter
}

// Handler is how one handler is protected. The zero value of each field is its
// default.
type Handler struct {
	// Unprotected leaves the handler as it is: no transaction, no key.
	Unprotected bool

	// Consumer names the handler in keys. Set it to rename a handler in the
	// router without forgetting its keys. Empty: the name in the router.
	Consumer string

	// Key identifies a message. Nil: [UUID].
	Key Part

	// Source is the space within which Key is unique. Nil: empty.
	Source Part

	// EventType is kept with the key for people who read the table. Nil: the
	// metadata field "name", which cqrs sets.
	EventType func(*message.Message) string

	// Fingerprint keeps a hash of the payload, and compares it for a duplicate.
	// Empty: [FingerprintOff].
	Fingerprint Fingerprint

	// SentAt tells when a message was sent; the zero time if that is unknown. Nil:
	// [SentInID].
	SentAt func(*message.Message) time.Time

	// TooOld says what becomes of a message without a key that was sent longer ago
	// than the store's window. Empty: [TooOldProcess].
	TooOld TooOld

	// Skip lets the messages for which it returns true pass to the handler
	// without transaction or key. It is called before the key is made. Nil: none.
	Skip func(*message.Message) bool

	// Produced says what becomes of the messages that the handler returns. Nil:
	// [Replay].
	Produced ProducedPolicy

	// MaxRecord bounds the record of produced messages and the result together, in
	// bytes. Zero:
	// [DefaultMaxRecord]. Negative: no bound but the database's.
	MaxRecord int

	// DropUnroutable acks a duplicate whose record cannot be replayed, as the
	// handler has no publish topic any more. Otherwise it fails with
	// [inbox.ErrNoTopic] until it has one again.
	DropUnroutable bool

	// OnDuplicate is called for each duplicate before its record is replayed; the
	// entry has the result of the first delivery. Its error nacks the message.
	// There is no transaction in the message's context. Nil: nothing.
	OnDuplicate func(*message.Message, inbox.Entry) error

	// Bind adds to the handler's context, for example an ORM's handle made from
	// the transaction in it. The returned context must derive from ctx. Its error
	// fails the delivery. Nil: nothing.
	Bind func(ctx context.Context) (context.Context, error)

	// Grace is how long a handler may go on, and commit, after its context was
	// cancelled, as a router does when it closes. Keep it below the time after
	// which the process is killed. Zero: [inbox.DefaultGrace]. Negative: the
	// cancellation is followed at once. A deadline is always followed.
	Grace time.Duration

	// Inside are middlewares between the inbox and the handler, the first one
	// outermost. Those of the handler in Handlers replace those of all handlers.
	Inside []message.HandlerMiddleware
}

// over returns h with the values of base where h has none.
func (h Handler) over(base Handler) Handler {
	if h.Key == nil {
		h.Key = base.Key
	}
	if h.Source == nil {
		h.Source = base.Source
	}
	if h.EventType == nil {
		h.EventType = base.EventType
	}
	if h.SentAt == nil {
		h.SentAt = base.SentAt
	}
	if h.Skip == nil {
		h.Skip = base.Skip
	}
	if h.Produced == nil {
		h.Produced = base.Produced
	}
	if h.OnDuplicate == nil {
		h.OnDuplicate = base.OnDuplicate
	}
	if h.Bind == nil {
		h.Bind = base.Bind
	}
	if h.Inside == nil {
		h.Inside = base.Inside
	}
	h.Fingerprint = cmp.Or(h.Fingerprint, base.Fingerprint)
	h.TooOld = cmp.Or(h.TooOld, base.TooOld)
	h.MaxRecord = cmp.Or(h.MaxRecord, base.MaxRecord)
	h.Grace = cmp.Or(h.Grace, base.Grace)
	return h
}

// defaults are what stands under the settings of all handlers.
func defaults() Handler {
	return Handler{
		Key:       UUID,
		Source:    func(*message.Message) (string, error) { return "", nil },
		EventType: func(msg *message.Message) string { return msg.Metadata.Get("name") },
		SentAt:    SentInID,
		Produced:  Replay(),
		MaxRecord: DefaultMaxRecord,
		Grace:     inbox.DefaultGrace,
	}
}

func (c Config) validate() error {
	var errs []error
	if c.Handler.Consumer != "" {
		errs = append(errs, fmt.Errorf("Config.Handler.Consumer %q would give all handlers one consumer, so that each takes the others' messages for duplicates: set it in Config.Handlers", c.Handler.Consumer))
	}
	errs = append(errs, c.Handler.validate("Config.Handler"))
	handlerOf := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Handlers)) {
		if name == "" {
			errs = append(errs, errors.New("Config.Handlers has settings for a handler without a name"))
		}
		errs = append(errs, c.Handlers[name].validate(fmt.Sprintf("Config.Handlers[%q]", name)))
		if c.Handlers[name].Unprotected {
			continue
		}
		consumer := cmp.Or(c.Handlers[name].Consumer, name)
		if other, ok := handlerOf[consumer]; ok {
			errs = append(errs, fmt.Errorf("%w: %q and %q are both consumer %q; give each its own", inbox.ErrConsumer, other, name, consumer))
		}
		handlerOf[consumer] = name
	}
	for i, o := range c.Observers {
		if o == nil {
			errs = append(errs, fmt.Errorf("Config.Observers[%d] is nil", i))
		}
	}
	return errors.Join(errs...)
}

func (h Handler) validate(field string) error {
	if err := errors.Join(h.Fingerprint.validate(field), h.TooOld.validate(field)); err != nil {
		return err
	}
	for i, m := range h.Inside {
		if m == nil {
			return fmt.Errorf("%s.Inside[%d] is nil", field, i)
		}
	}
	return nil
}
