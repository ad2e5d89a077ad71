package inboxmw

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/delivery"
)

// publishers are those of buses, by the name that they have in records.
type publishers struct {
	mu sync.RWMutex
	by map[string]message.Publisher
}

func (p *publishers) get(name string) (message.Publisher, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	publisher, ok := p.by[name]
	return publisher, ok
}

// Publisher wraps the publisher of a bus (of cqrs, or of requestreply), whose
// handlers publish instead of returning messages. What a protected handler
// publishes through it, with the handler's context on the message, is kept in the
// record with the key, published once the transaction is committed and before the
// message is acked, and published again for a duplicate. Publish then returns
// before anything was sent: its nil error says that the message is kept, which it
// is if, and only if, the handler's effects are.
//
// A message without the context of a protected handler is published at once.
// One whose delivery is over, as that of a goroutine that the handler left
// behind, is [inbox.ErrTxEnded].
//
// The name stands in records, and must stay the same as long as these are kept;
// it must not be empty, nor given twice, which panics. Closing the publisher
// closes the wrapped one. It is safe for concurrent use if that is.
func (in *Inbox) Publisher(name string, publisher message.Publisher) message.Publisher {
	if name == "" || publisher == nil {
		panic("inboxmw: Publisher needs a name and a publisher")
	}
	in.publishers.mu.Lock()
	defer in.publishers.mu.Unlock()
	if _, ok := in.publishers.by[name]; ok {
		panic(fmt.Sprintf("inboxmw: there is a publisher %q already", name))
	}
	if in.publishers.by == nil {
		in.publishers.by = map[string]message.Publisher{}
	}
	in.publishers.by[name] = publisher
	return &keepingPublisher{in: in, name: name, Publisher: publisher}
}

var errLate = fmt.Errorf("%w: the delivery that this message was published from is over; it was not published", inbox.ErrTxEnded)

type keepingPublisher struct {
	in   *Inbox
	name string
	message.Publisher
}

func (p *keepingPublisher) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		if err := p.publish(topic, m); err != nil {
			return err
		}
	}
	return nil
}

func (p *keepingPublisher) publish(topic string, m *message.Message) error {
	state := delivery.FromContext(m.Context())
	switch {
	case state == nil:
		return p.Publisher.Publish(topic, m)
	case state.Ended():
		return errLate
	}
	if o, ok := state.Owner.(*owner); !ok || o.in != p.in {
		return errors.New("inboxmw: the handler is protected by another inbox than the one that this publisher is of")
	}
	// A copy, as what is committed must be what is sent, whoever changes m later.
	if !state.Keep(produced{publisher: p.name, topic: topic, msg: m.Copy()}) {
		return errLate
	}
	return nil
}

// TxPublisher returns a publisher for buses that writes to an outbox table within
// the transaction of the handler: open is that of [Outbox]. The transaction comes
// from the context of each message, where buses put the handler's. Messages
// without one go to outside; if that is nil, they are [inbox.ErrNoTx]. Closing it
// closes outside.
func TxPublisher[T any](open func(tx T) (message.Publisher, error), outside message.Publisher) message.Publisher {
	if open == nil {
		panic("inboxmw: TxPublisher needs a function that opens a publisher")
	}
	return txPublisher[T]{open: open, outside: outside}
}

type txPublisher[T any] struct {
	open    func(tx T) (message.Publisher, error)
	outside message.Publisher
}

func (p txPublisher[T]) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		var err error
		if delivery.FromContext(m.Context()) == nil && p.outside != nil {
			err = p.outside.Publish(topic, m)
		} else {
			err = publishInTx(m.Context(), p.open, topic, []*message.Message{m})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p txPublisher[T]) Close() error {
	if p.outside == nil {
		return nil
	}
	return p.outside.Close()
}
