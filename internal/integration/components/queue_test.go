package components_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// queue is a broker with one subscriber and one message at a time. As brokers do,
// it redelivers a copy of the object that was nacked.
type queue struct {
	t        *testing.T
	messages chan *message.Message
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	return &queue{t: t, messages: make(chan *message.Message)}
}

// Subscribe implements [message.Subscriber]. A router that closes ends ctx, and
// does not always call Close.
func (q *queue) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for {
			select {
			case msg := <-q.messages:
				out <- msg
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// Close implements [message.Subscriber].
func (*queue) Close() error { return nil }

// deliver delivers a message until it is acked, at most this many times, and
// returns it as the last delivery left it.
func (q *queue) deliver(msg *message.Message, most int) (last *message.Message, acked bool) {
	q.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for range most {
		msg = msg.Copy()
		q.messages <- msg
		select {
		case <-msg.Acked():
			return msg, true
		case <-msg.Nacked():
		case <-timer.C:
			q.t.Fatal("a message was neither acked nor nacked")
		}
	}
	return msg, false
}
