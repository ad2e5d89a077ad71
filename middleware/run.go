package inboxmw

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

// run is one delivery of a message to a protected handler.
type run struct {
	in  *Inbox
	w   *wrapped
	p   *protected
	msg *message.Message

	delivery inbox.Delivery
	old      bool // no key, and sent before the window
	state    *delivery.State
	out      []*message.Message // for the router
	later    []produced         // for the publishers of buses
}

func (r *run) handle() ([]*message.Message, error) {
	before := snapshot(r.msg)
	if err := r.identified(before); err != nil {
		return nil, err
	}
	if outer := ownerOf(before.ctx); outer != nil {
		switch {
		case outer.msg == r.msg:
			return r.inner(outer)
		case outer.in.store == r.in.store && outer.key == r.delivery.Key:
			// A middleware in between copies the message; the claim would wait for its own.
			err := fmt.Errorf("%w: it has the same key %s, of which the handler gets a copy; add the inbox once", inbox.ErrNested, outer.key)
			r.refuse(before, err)
			return nil, err
		}
	}
	twice, err := r.in.consumers.enter(r.p.Consumer, r.p.name, r.w)
	if err != nil {
		r.refuse(before, err)
		return nil, err
	}
	defer r.in.consumers.leave(r.p.Consumer, r.w)
	if twice {
		r.in.log().Info("Inbox: a handler of this name runs in two routers at once; they are one consumer, and each message is processed by one of them", r.fields())
	}
	out, err := r.protect(before)
	if err != nil {
		return nil, err
	}
	return out, r.publish()
}

// refuse ends a delivery that never came to the store.
func (r *run) refuse(before saved, err error) {
	o := r.in.observe(before.ctx, r.delivery, r.p.name)
	e := r.event(o, inbox.Failed, err)
	r.report(e)
	o.end(e)
}

// inner is a delivery that an inbox further out has begun. Claiming the key once
// more would wait for that claim for ever.
func (r *run) inner(outer *owner) ([]*message.Message, error) {
	same := outer.in.store == r.in.store && outer.key == r.delivery.Key && (r.w.own == nil || r.w.own == outer.own)
	if !same {
		return nil, fmt.Errorf("%w: it has key %s, this one %s; keep one of them, with its settings in Config.Handlers", inbox.ErrNested, outer.key, r.delivery.Key)
	}
	if outer.own == nil && !r.w.warned.Swap(true) {
		r.in.log().Info("Inbox stands twice around one handler; the inner one does nothing", r.fields())
	}
	return r.w.next(r.msg)
}

// identified makes the key, or refuses the message, also if a function of the
// user panics.
func (r *run) identified(before saved) error {
	returned := false
	defer func() {
		if !returned {
			r.refuse(before, errHandlerGone)
		}
	}()
	err := r.identify()
	returned = true
	if err != nil {
		r.refuse(before, err)
	}
	return err
}

// identify makes the key, from the message as it was delivered.
func (r *run) identify() error {
	r.delivery.Key.Consumer = r.p.Consumer
	var err error
	if r.delivery.Key.Source, err = r.p.Source(r.msg); err == nil {
		r.delivery.Key.MessageID, err = r.p.Key(r.msg)
	}
	if err != nil {
		return &inbox.KeyError{Key: r.delivery.Key, Part: "message id", Reason: err.Error(), Err: err}
	}
	if err := r.delivery.Key.Validate(); err != nil {
		return err
	}
	r.delivery.EventType = r.p.EventType(r.msg)
	r.delivery.Fingerprint = r.p.Fingerprint.of(r.msg.Payload)
	r.delivery.SentAt = r.p.SentAt(r.msg)
	return nil
}

// protect asks the store to run the handler, and leaves the message as it came.
func (r *run) protect(before saved) (out []*message.Message, err error) {
	r.state = &delivery.State{Owner: &owner{msg: r.msg, in: r.in, key: r.delivery.Key, own: r.w.own}}
	o := r.in.observe(before.ctx, r.delivery, r.p.name)
	outcome, returned := inbox.Failed, false
	event := inbox.Event{}
	defer func() {
		r.state.End()
		r.msg.SetContext(before.ctx)
		if !returned {
			err = errHandlerGone
		}
		// After a commit too: if publishing fails, the broker sends this object again.
		if before.restore(r.msg) && outcome != inbox.Processed {
			r.in.log().Error("Inbox: the handler changed the bytes of the payload in place; a redelivered copy carries the change", errPayloadChanged, r.fields())
		}
		e := r.event(o, outcome, err)
		e.Age, e.Mismatch = event.Age, event.Mismatch
		if err == nil {
			e.Produced = len(out) + len(r.later)
		}
		r.report(e)
		o.end(e)
	}()

	ctx := delivery.WithGrace(delivery.NewContext(o.ctx, r.state), r.p.Grace)
	if acked(r.msg) {
		// Some brokers cancel the context of a message once it is acked. A store
		// would refuse it, and it would be lost.
		detached, release := uncancelled(ctx)
		defer release()
		ctx = detached
	}
	entry, duplicate, err := r.in.store.Once(ctx, r.delivery, r.effect)
	r.state.End()
	r.msg.SetContext(before.ctx)
	switch {
	case errors.Is(err, inbox.ErrInFlight):
		outcome = inbox.InFlight
	case err != nil:
	case duplicate:
		event.Age, event.Mismatch = entry.Age, mismatch(entry.Fingerprint, r.delivery.Fingerprint)
		if err = r.replay(entry); err == nil {
			outcome, out = inbox.Duplicate, r.out
		}
	case entry.Discard != "":
		outcome = inbox.Discarded
	default:
		outcome, out = inbox.Processed, r.out
		r.release(out)
	}
	returned = true
	return out, err
}

// uncancelled returns ctx without its cancellation, but with its deadline.
func uncancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline)
}

var (
	errHandlerGone    = errors.New("inbox: the handler, or a function of its settings, panicked or ended its goroutine")
	errPayloadChanged = errors.New("inbox: payload changed in place")
	errEarlyAck       = errors.New("inbox: message acked before the commit")
)

// effect runs the handler within the store's transaction.
func (r *run) effect(ctx context.Context) (inbox.Effect, error) {
	if late := r.late(); late != nil {
		r.old = true
		switch r.p.TooOld {
		case TooOldFail:
			return inbox.Effect{}, late
		case TooOldDiscard:
			return inbox.Effect{Discard: late.Error()}, nil
		case TooOldProcess:
		}
	}
	if r.p.Bind != nil {
		bound, err := r.p.Bind(ctx)
		if err != nil {
			return inbox.Effect{}, fmt.Errorf("inbox: bind: %w", err)
		}
		if bound == nil {
			return inbox.Effect{}, errors.New("inbox: bind: it returned a nil context")
		}
		ctx = bound
	}
	r.msg.SetContext(ctx)
	returned, err := r.p.next(r.msg)
	result, discard, later := r.state.Take()
	switch {
	case discard != "" && len(returned)+len(later) > 0:
		return inbox.Effect{}, refuse("a discarded delivery produces no messages: they would be lost")
	case discard != "":
		return inbox.Effect{Discard: discard}, nil
	case err != nil:
		return inbox.Effect{}, err
	}
	var record []byte
	if len(returned)+len(later) > 0 {
		if record, err = r.record(ctx, returned, later); err != nil {
			return inbox.Effect{}, err
		}
	}
	if n := len(record) + len(result); r.p.MaxRecord > 0 && n > r.p.MaxRecord {
		return inbox.Effect{}, refuse(fmt.Sprintf("record and result have %d bytes, more than MaxRecord (%d): publish a reference instead, or raise it, and max_allowed_packet on MySQL and MariaDB", n, r.p.MaxRecord))
	}
	return inbox.Effect{Record: record, Result: result}, nil
}

// record keeps what the handler returned, by its policy, and what it published
// through the publishers of buses.
func (r *run) record(ctx context.Context, returned []*message.Message, later []any) ([]byte, error) {
	var record []produced
	all := slices.Clone(returned)
	for _, k := range later {
		p := k.(produced) //nolint:forcetypeassert,errcheck // nothing else is kept
		record = append(record, p)
		all = append(all, p.msg)
	}
	if err := sendable(r.msg, all); err != nil {
		return nil, err
	}
	r.later = record
	if len(returned) > 0 {
		topic := message.PublishTopicFromCtx(ctx)
		if topic == "" {
			return nil, fmt.Errorf("%w: the handler returns messages but has no publish topic: add it with AddHandler, and run it in a router", inbox.ErrNoTopic)
		}
		own, err := r.p.Produced.keep(kept{ctx: ctx, topic: topic, messages: returned})
		if err != nil {
			return nil, err
		}
		for _, p := range own {
			r.out = append(r.out, p.msg)
		}
		record = append(record, own...)
	}
	return encodeRecord(record), nil
}

// replay takes the produced messages of the first delivery from its record, to
// be published again whatever today's policy is.
func (r *run) replay(e inbox.Entry) error {
	r.out, r.later = nil, nil // of a run that a store may have undone
	if r.p.Fingerprint == FingerprintFail && mismatch(e.Fingerprint, r.delivery.Fingerprint) {
		return mismatched{key: r.delivery.Key}
	}
	if r.p.OnDuplicate != nil {
		if err := r.p.OnDuplicate(r.msg, e); err != nil {
			return fmt.Errorf("%w: OnDuplicate: %w", inbox.ErrAfterCommit, err)
		}
	}
	record, err := decodeRecord(e.Record)
	if err != nil {
		return fmt.Errorf("%w (of %s)", err, r.delivery.Key)
	}
	topic := message.PublishTopicFromCtx(r.msg.Context())
	for _, p := range record {
		switch {
		case p.publisher != "":
			r.later = append(r.later, p)
		case topic == "" && r.p.DropUnroutable:
			r.in.log().Info("Inbox: a produced message of a duplicate is dropped, as the handler has no publish topic any more", r.fields())
		case topic == "":
			return fmt.Errorf("%w: duplicate %s has a record for topic %q, but its handler publishes to none now: give it a topic, or set DropUnroutable", inbox.ErrNoTopic, r.delivery.Key, p.topic)
		default:
			if p.topic != topic {
				r.in.log().Info("Inbox: a record is replayed to another topic than it was made for", r.fields().Add(watermill.LogFields{"publish_topic": topic, "record_topic": p.topic}))
			}
			r.out = append(r.out, p.msg)
		}
	}
	return nil
}

// publish sends what is not the router's to send. The transaction is committed;
// after an error here the next delivery is a duplicate, and publishes again.
func (r *run) publish() error {
	for _, p := range r.later {
		publisher, ok := r.in.publishers.get(p.publisher)
		if !ok {
			return fmt.Errorf("%w: %s has a message for publisher %q, which this inbox does not have: wrap it with Inbox.Publisher under that name", inbox.ErrRecord, r.delivery.Key, p.publisher)
		}
		if err := publisher.Publish(p.topic, p.msg); err != nil {
			return fmt.Errorf("%w: publish what the handler of %s produced, through %q: %w", inbox.ErrAfterCommit, r.delivery.Key, p.publisher, err)
		}
	}
	return nil
}

// release frees produced messages from the context of the handler: its
// transaction is over, and its cancellation must not stop their publishing.
func (r *run) release(out []*message.Message) {
	for _, m := range out {
		if ctx := m.Context(); delivery.FromContext(ctx) == r.state {
			m.SetContext(delivery.NewContext(context.WithoutCancel(ctx), nil))
		}
	}
}

func (r *run) event(o observation, outcome inbox.Outcome, err error) inbox.Event {
	return inbox.Event{
		Delivery: r.delivery,
		Outcome:  outcome,
		Err:      err,
		Duration: time.Since(o.started),
		TooOld:   r.old,
		EarlyAck: acked(r.msg),
	}
}

// report logs what no one above can know. Errors as such are the router's to log.
func (r *run) report(e inbox.Event) {
	var failed *inbox.StoreError
	if errors.As(e.Err, &failed) && errors.Is(e.Err, inbox.ErrTxEnded) {
		r.in.log().Error("Inbox: the transaction ended while the handler ran; statements after that may have been committed one by one", e.Err, r.fields())
	}
	if e.Mismatch {
		r.in.log().Error("Inbox: a duplicate has other content than the first delivery of its key", mismatched{key: r.delivery.Key}, r.fields())
	}
	if e.TooOld && e.Outcome == inbox.Processed {
		r.in.log().Info("Inbox: a message older than the window was processed; if it had been before, that was forgotten", r.fields().Add(watermill.LogFields{"sent_at": e.Delivery.SentAt}))
	}
	switch {
	case e.EarlyAck && e.Err != nil:
		r.in.log().Error("Inbox: a message that was acked before the commit has failed and is lost", e.Err, r.fields())
	case e.EarlyAck:
		r.in.log().Error("Inbox: a message was acked before the commit; had that failed, it would be lost", errEarlyAck, r.fields())
	case e.Outcome == inbox.Duplicate && r.in.logger.Load() != nil:
		r.in.log().Debug("Inbox: duplicate", r.fields().Add(watermill.LogFields{"age": e.Age, "produced_messages_count": e.Produced}))
	}
}

func (r *run) fields() watermill.LogFields {
	ctx := r.msg.Context()
	return watermill.LogFields{
		"message_uuid": r.msg.UUID,
		"handler_name": r.p.name,
		"topic":        message.SubscribeTopicFromCtx(ctx),
		"inbox_key":    r.delivery.Key.String(),
	}
}
