package components_test

import (
	"errors"
	"slices"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

var errBroker = errors.New("the broker is away")

// ledger is a publisher that keeps what it is given.
type ledger struct {
	shop *shop      // whose committed rows are counted at each publish; nil: none
	came chan entry // what it is given; nil: nobody waits

	mu      sync.Mutex
	fails   int // publishes to come that fail
	entries []entry
}

// entry is a message that was published.
type entry struct {
	topic, uuid, correlation string

	orders, keys int // committed when it was published
}

// Publish implements [message.Publisher].
func (l *ledger) Publish(topic string, messages ...*message.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails > 0 {
		l.fails--
		return errBroker
	}
	committed, err := l.committed()
	if err != nil {
		return err
	}
	for _, m := range messages {
		e := committed
		e.topic, e.uuid, e.correlation = topic, m.UUID, middleware.MessageCorrelationID(m)
		l.entries = append(l.entries, e)
		if l.came != nil {
			l.came <- e
		}
	}
	return nil
}

// Close implements [message.Publisher].
func (*ledger) Close() error { return nil }

func (l *ledger) committed() (e entry, err error) {
	if l.shop == nil {
		return entry{}, nil
	}
	var errOrders, errKeys error
	e.orders, errOrders = l.shop.count("orders")
	e.keys, errKeys = l.shop.count(keys)
	return e, errors.Join(errOrders, errKeys)
}

func (l *ledger) all() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// uuids returns the different ones, in order.
func uuids(entries []entry) []string {
	var all []string
	for _, e := range entries {
		if !slices.Contains(all, e.uuid) {
			all = append(all, e.uuid)
		}
	}
	return all
}

// correlated counts those with a correlation id.
func correlated(entries []entry) (n int) {
	for _, e := range entries {
		if e.correlation != "" {
			n++
		}
	}
	return n
}
