package testutil

import (
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Recorder is a publisher that keeps what it gets, for tests. The zero value is
// ready. It is safe for concurrent use.
type Recorder struct {
	mu        sync.Mutex
	published []Published
}

// Published is a message that was published.
type Published struct {
	Topic   string
	Message *message.Message // a copy
}

// Publish implements [message.Publisher]. It never fails.
func (r *Recorder) Publish(topic string, messages ...*message.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, msg := range messages {
		r.published = append(r.published, Published{Topic: topic, Message: msg.Copy()})
	}
	return nil
}

// Close implements [message.Publisher]. It does nothing.
func (r *Recorder) Close() error { return nil }

// Published returns what was published, in order.
func (r *Recorder) Published() []Published {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Published(nil), r.published...)
}

// count and since are for a recorder that may be nil.
func (r *Recorder) count() int {
	if r == nil {
		return 0
	}
	return len(r.Published())
}

func (r *Recorder) since(n int) []Published {
	if r == nil {
		return nil
	}
	return r.Published()[n:]
}
