package brokers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
)

func TestGoChannel(t *testing.T) {
	t.Parallel()
	runSuite(t, Broker{
		Name:     "gochannel",
		Open:     openGoChannel,
		OddTopic: " \x00\xff/ü",
		Lacks: map[string]string{
			caseInterrupt:  "it is gone when its process is",
			caseRefusedAck: "it has no acks that could be refused",
			caseNative:     "it gives a message no identity",
		},
	})
}

// openGoChannel has a channel that keeps all messages: a subscription gets them all
// from the first on, as there are no groups. So members have each message twice.
func openGoChannel(t *testing.T, _ Setting) *Env {
	t.Helper()
	channel := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	t.Cleanup(func() {
		if err := channel.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Env{
		Publisher:  func() message.Publisher { return &channelPublisher{channel: channel} },
		Subscriber: func(string, string) message.Subscriber { return channelSubscriber{channel} },
		Database:   func() *database { return newSQLite(t) },
		Foreign: func(topic, payload string) {
			if err := channel.Publish(topic, message.NewMessage("", []byte(payload))); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// channelPublisher leaves the channel open when it is closed, and is then closed
// itself, as the publishers of other Pub/Subs are.
type channelPublisher struct {
	channel *gochannel.GoChannel
	closed  atomic.Bool
}

func (p *channelPublisher) Publish(topic string, messages ...*message.Message) error {
	if p.closed.Load() {
		return errors.New("the publisher is closed")
	}
	return p.channel.Publish(topic, messages...)
}

func (p *channelPublisher) Close() error {
	p.closed.Store(true)
	return nil
}

// channelSubscriber ends with the context of its subscriptions.
type channelSubscriber struct{ channel *gochannel.GoChannel }

func (s channelSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	return s.channel.Subscribe(ctx, topic)
}

func (channelSubscriber) Close() error { return nil }
