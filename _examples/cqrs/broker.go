package main

import (
	"sync"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
)

// broker delivers each message twice, and again what was nacked.
type broker struct {
	*gochannel.GoChannel
	unsettled            sync.WaitGroup
	deliveries, failures atomic.Int64

	mu        sync.Mutex
	published map[string]map[string]bool // the UUIDs of each topic
}

func newBroker() *broker {
	return &broker{
		GoChannel: gochannel.NewGoChannel(gochannel.Config{}, nil),
		published: map[string]map[string]bool{"PlaceOrder": {}, "OrderPlaced": {}},
	}
}

func (b *broker) Publish(topic string, messages ...*message.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		b.published[topic][m.UUID] = true
		b.unsettled.Add(2)
	}
	return b.GoChannel.Publish(topic, append(messages, messages...)...)
}

// settle is a middleware that sees which deliveries succeed. What a handler
// publishes is counted before its own message is settled, so that nothing is
// unsettled only when nothing can follow.
func (b *broker) settle(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		b.deliveries.Add(1)
		out, err := next(msg)
		if err != nil {
			b.failures.Add(1)
			return nil, err
		}
		b.unsettled.Done()
		return out, nil
	}
}
