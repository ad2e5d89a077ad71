package inboxmw

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// ProducedPolicy says what becomes of the messages that a handler returns:
// [Replay], [Outbox] or [Reject]. Each has the delivery fail before its commit,
// with [inbox.ErrProduced] or [inbox.ErrNoTopic], if they cannot be kept: without
// a topic, with a UUID that is empty or occurs twice, if the consumed message is
// among them, or if they are too large.
type ProducedPolicy interface {
	// keep returns the record for the store and the messages for the router.
	keep(k kept) (record []byte, router []*message.Message, err error)
}

// kept is what a policy keeps: at least one produced message.
type kept struct {
	ctx      context.Context //nolint:containedctx // the handler's, handed on within its call
	consumed *message.Message
	produced []*message.Message
	limit    int
}

// Replay stores the produced messages with the key, in the same transaction, and
// hands them to the router. A duplicate hands them to the router again, with the
// same UUIDs, metadata and payloads: at least once, on any broker that redelivers
// what was not acked. It is the default, and costs nothing if nothing is produced.
func Replay() ProducedPolicy { return replay{} }

type replay struct{}

func (replay) keep(k kept) ([]byte, []*message.Message, error) {
	topic, err := k.topic()
	if err != nil {
		return nil, nil, err
	}
	record := make([]produced, len(k.produced))
	for i, m := range k.produced {
		record[i] = produced{topic: topic, msg: m}
	}
	b := encodeRecord(record)
	if k.limit > 0 && len(b) > k.limit {
		return nil, nil, refuse(fmt.Sprintf("their record has %d bytes, more than MaxRecord (%d): publish a reference instead, or raise it, and max_allowed_packet on MySQL and MariaDB", len(b), k.limit))
	}
	return b, k.produced, nil
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
	return outbox[T]{open: open}
}

type outbox[T any] struct {
	open func(tx T) (message.Publisher, error)
}

func (o outbox[T]) keep(k kept) ([]byte, []*message.Message, error) {
	topic, err := k.topic()
	if err != nil {
		return nil, nil, err
	}
	tx, err := inbox.Tx[T](k.ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("open the outbox: %w", err)
	}
	publisher, err := o.open(tx)
	if err != nil {
		return nil, nil, fmt.Errorf("inbox: open the outbox: %w", err)
	}
	for _, m := range k.produced {
		// Some publishers run their SQL with the context of the first message.
		if m.Context() == context.Background() {
			m.SetContext(k.ctx)
		}
	}
	if err := publisher.Publish(topic, k.produced...); err != nil {
		return nil, nil, fmt.Errorf("inbox: publish to the outbox: %w", err)
	}
	return nil, nil, nil
}

// Reject fails every delivery that produces messages, before its commit: for
// handlers that are not meant to.
func Reject() ProducedPolicy { return reject{} }

type reject struct{}

func (reject) keep(kept) ([]byte, []*message.Message, error) {
	return nil, nil, refuse("the policy of this handler is Reject: use Replay or Outbox, or return none")
}

// topic returns where the router publishes to, once the messages can be kept.
func (k kept) topic() (string, error) {
	seen := make(map[string]bool, len(k.produced))
	for i, m := range k.produced {
		switch {
		case m == nil:
			return "", refuse(fmt.Sprintf("message %d is nil", i))
		case m == k.consumed:
			return "", refuse("the consumed message itself is among them: return a Copy of it")
		case m.UUID == "":
			return "", refuse(fmt.Sprintf("message %d has no UUID, by which the next consumer knows it: use message.NewMessage(watermill.NewUUID(), …)", i))
		case seen[m.UUID]:
			return "", refuse(fmt.Sprintf("message %d has the UUID of another one, so that the next consumer would take it for a duplicate: give each its own", i))
		}
		seen[m.UUID] = true
	}
	topic := message.PublishTopicFromCtx(k.ctx)
	if topic == "" {
		return "", fmt.Errorf("%w: the handler returns messages but has no publish topic: add it with AddHandler, and run it in a router", inbox.ErrNoTopic)
	}
	return topic, nil
}

// refused is a reason that lies in the produced messages.
type refused struct{ reason string }

func refuse(reason string) error { return refused{reason: reason} }

func (e refused) Error() string { return fmt.Sprintf("%v: %s", inbox.ErrProduced, e.reason) }

func (e refused) Is(target error) bool { return target == inbox.ErrProduced }

func (e refused) Permanent() bool { return true }
