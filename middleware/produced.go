package inboxmw

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

// ProducedPolicy says what becomes of the messages that a handler returns:
// [Replay], [Outbox] or [Reject]. Each has the delivery fail before its commit,
// with [inbox.ErrProduced] or [inbox.ErrNoTopic], if they cannot be kept: without
// a topic, with a UUID that is empty or occurs twice, if the consumed message is
// among them, or if they are too large.
type ProducedPolicy interface {
	// keep returns what goes into the record. Without any of it, the router gets
	// no messages.
	keep(k kept) (record []produced, err error)
}

// kept is what a policy keeps: at least one message that a handler returned.
type kept struct {
	ctx      context.Context //nolint:containedctx // the handler's, handed on within its call
	topic    string
	messages []*message.Message
}

// Replay stores the produced messages with the key, in the same transaction, and
// hands them to the router. A duplicate hands them to the router again, with the
// same UUIDs, metadata and payloads: at least once, on any broker that redelivers
// what was not acked. It is the default, and costs nothing if nothing is produced.
func Replay() ProducedPolicy { return replay{} }

type replay struct{}

func (replay) keep(k kept) ([]produced, error) {
	record := make([]produced, len(k.messages))
	for i, m := range k.messages {
		record[i] = produced{topic: k.topic, msg: m}
	}
	return record, nil
}

// Outbox publishes the produced messages inside the transaction, through the
// publisher that open makes for it; another process relays them from there. The
// router gets none. T is any type of transaction that the store offers, and open
// must return a publisher that writes through it and nothing else, such as that
// of watermill-sql. It is called once for each delivery that produces, and the
// publisher is not closed.
//
// The publisher's table must exist: a statement that creates it would end the
// transaction on some databases.
func Outbox[T any](open func(tx T) (message.Publisher, error)) ProducedPolicy {
	if open == nil {
		panic("inboxmw: Outbox needs a function that opens a publisher")
	}
	return outbox[T]{open: open}
}

type outbox[T any] struct {
	open func(tx T) (message.Publisher, error)
}

func (o outbox[T]) keep(k kept) ([]produced, error) {
	return nil, publishInTx(k.ctx, o.open, k.topic, k.messages)
}

// Reject fails every delivery that produces messages, before its commit: for
// handlers that are not meant to.
func Reject() ProducedPolicy { return reject{} }

type reject struct{}

func (reject) keep(kept) ([]produced, error) {
	return nil, refuse("the policy of this handler is Reject: use Replay or Outbox, or return none")
}

// publishInTx publishes through a publisher that is bound to the transaction of
// the delivery.
func publishInTx[T any](ctx context.Context, open func(tx T) (message.Publisher, error), topic string, messages []*message.Message) error {
	tx, err := inbox.Tx[T](ctx)
	if err != nil {
		return fmt.Errorf("open the outbox: %w", err)
	}
	publisher, err := open(tx)
	if err != nil {
		return fmt.Errorf("inbox: open the outbox: %w", err)
	}
	state := delivery.FromContext(ctx)
	for _, m := range messages {
		// Some publishers run their SQL with the context of the first message.
		// One of the handler may be over, as that of a Timeout inside.
		if own := m.Context(); own == context.Background() || delivery.FromContext(own) == state { //nolint:contextcheck // it is looked at, not used
			m.SetContext(ctx)
		}
	}
	if err := publisher.Publish(topic, messages...); err != nil {
		return fmt.Errorf("inbox: publish to the outbox: %w", err)
	}
	return nil
}

// sendable returns an error unless messages can be told apart by whoever
// consumes them. consumed is the message that they came from.
func sendable(consumed *message.Message, messages []*message.Message) error {
	seen := make(map[string]bool, len(messages))
	for i, m := range messages {
		switch {
		case m == nil:
			return refuse(fmt.Sprintf("message %d is nil", i))
		case m == consumed:
			return refuse("the consumed message itself is among them: return a Copy of it")
		case m.UUID == "":
			return refuse(fmt.Sprintf("message %d has no UUID, by which the next consumer knows it: use message.NewMessage(watermill.NewUUID(), …)", i))
		case seen[m.UUID]:
			return refuse(fmt.Sprintf("message %d has the UUID of another one, so that the next consumer would take it for a duplicate: give each its own", i))
		}
		seen[m.UUID] = true
	}
	return nil
}

// refused is a reason that lies in the produced messages.
type refused struct{ reason string }

func refuse(reason string) error { return refused{reason: reason} }

func (e refused) Error() string { return fmt.Sprintf("%v: %s", inbox.ErrProduced, e.reason) }

func (e refused) Is(target error) bool { return target == inbox.ErrProduced }

func (e refused) Permanent() bool { return true }
