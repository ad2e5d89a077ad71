package components_test

import (
	"errors"
	"slices"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

var errBroker = errors.New("the broker is away")

// ledger is a publisher that keeps what it is given, and what was committed then.
type ledger struct {
	shop *shop

	mu      sync.Mutex
	fails   int // publishes to come that fail
	entries []entry
	came    chan entry
}

// entry is a message that was published.
type entry struct {
	topic, uuid, correlation string

	orders, keys int // committed when it was published
}

func newLedger(s *shop) *ledger { return &ledger{shop: s, came: make(chan entry, 256)} }

// Publish implements [message.Publisher].
func (l *ledger) Publish(topic string, messages ...*message.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails > 0 {
		l.fails--
		return errBroker
	}
	orders, errOrders := l.shop.count("orders")
	committed, errKeys := l.shop.count(keys)
	if err := errors.Join(errOrders, errKeys); err != nil {
		return err
	}
	for _, m := range messages {
		e := entry{topic: topic, uuid: m.UUID, correlation: middleware.MessageCorrelationID(m), orders: orders, keys: committed}
		l.entries = append(l.entries, e)
		l.came <- e
	}
	return nil
}

// Close implements [message.Publisher].
func (*ledger) Close() error { return nil }

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
