package brokers_test

import (
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// orderly closes a publisher between publishes: a router may do it during one, and
// not all publishers look with a lock whether they are closed.
type orderly struct {
	message.Publisher
	mu sync.RWMutex
}

func (p *orderly) Publish(topic string, messages ...*message.Message) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.Publisher.Publish(topic, messages...)
}

func (p *orderly) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Publisher.Close()
}
