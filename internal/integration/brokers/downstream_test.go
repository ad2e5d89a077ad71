package brokers_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

// order is the payload of all messages.
type order struct {
	ID string `json:"id"`
}

func payload(id string) []byte { return fmt.Appendf(nil, `{"id":%q}`, id) }

func orderID(msg *message.Message) (string, error) {
	var o order
	err := json.Unmarshal(msg.Payload, &o)
	return o.ID, err
}

// The metadata fields of produced messages.
const (
	fieldConsumer = "consumer"
	fieldOrder    = "order"
)

// downstream is who reads the produced messages. It knows nothing of an inbox.
type downstream struct {
	mu       sync.Mutex
	messages []*message.Message
}

// listen reads a topic until the test ends.
func listen(t *testing.T, subscriber message.Subscriber, topic string) *downstream {
	t.Helper()
	d := &downstream{}
	messages, err := subscriber.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ended := newHappening()
	go func() {
		defer ended.happen()
		for msg := range messages {
			d.mu.Lock()
			d.messages = append(d.messages, msg)
			d.mu.Unlock()
			msg.Ack()
		}
	}()
	t.Cleanup(func() {
		if err := subscriber.Close(); err != nil {
			t.Errorf("close the subscriber downstream: %v", err)
		}
		ended.await(t, "the subscription downstream is over")
	})
	return d
}

// produced returns, for each order of a consumer, how many different messages came.
func (d *downstream) produced(consumer string) map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	different := map[string]int{}
	known := map[[2]string]bool{}
	for _, msg := range d.messages {
		id := msg.Metadata.Get(fieldOrder)
		if msg.Metadata.Get(fieldConsumer) == consumer && !known[[2]string{id, msg.UUID}] {
			known[[2]string{id, msg.UUID}] = true
			different[id]++
		}
	}
	return different
}

// poisoned returns why each odd message came, if this is a poison queue.
func (d *downstream) poisoned() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	reasons := map[string]string{}
	for _, msg := range d.messages {
		reasons[msg.Metadata.Get(fieldCase)] = msg.Metadata.Get(middleware.ReasonForPoisonedKey)
	}
	return reasons
}
