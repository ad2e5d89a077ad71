package brokers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// fieldCase says in the metadata of an odd message which one it is.
const fieldCase = "case"

// oddMessage is a message that someone sends one day.
type oddMessage struct {
	name     string
	poisoned bool // it has no key that can be stored
	uuid     string
	metadata message.Metadata
	payload  []byte
}

// The names of odd messages, for those brokers that refuse or alter one.
const (
	oddNUL      = "a UUID with a NUL"
	oddBytes    = "a UUID that is not UTF-8"
	oddLong     = "a UUID of 600 bytes"
	oddNone     = "no UUID"
	oddBlanks   = "a UUID of blanks"
	oddTag      = "a UUID like a tag"
	oddEmptyKey = "metadata with an empty key"
	oddMetadata = "metadata that is not UTF-8"
	oddPayload  = "a payload of all bytes"
	oddEmpty    = "an empty payload"
	oddLarge    = "a payload of 10 MB"
)

func oddMessages() []oddMessage {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return []oddMessage{
		{name: oddNUL, poisoned: true, uuid: "a\x00b"},
		{name: oddBytes, poisoned: true, uuid: "\xff\xfe"},
		{name: oddLong, poisoned: true, uuid: strings.Repeat("long", 150)},
		{name: oddNone, poisoned: true},
		{name: oddBlanks, uuid: "   "},
		{name: oddTag, uuid: "~uuid~"},
		{name: oddEmptyKey, uuid: "odd-1", metadata: message.Metadata{"": "value"}},
		{name: oddMetadata, uuid: "odd-2", metadata: message.Metadata{"field": "\xff\x00"}},
		{name: oddPayload, uuid: "odd-3", payload: all},
		{name: oddEmpty, uuid: "odd-4", payload: []byte{}},
		{name: oddLarge, uuid: "odd-5", payload: slices.Repeat([]byte(`"0123456789"`), 10<<20/12)},
	}
}

// summary is what of a message has to arrive.
func summary(msg *message.Message) string {
	odd := message.Metadata{}
	for _, key := range []string{"", "field"} {
		if value, ok := msg.Metadata[key]; ok {
			odd[key] = value
		}
	}
	return fmt.Sprintf("UUID %.20q, %q, %d bytes %.20q", msg.UUID, odd, len(msg.Payload), msg.Payload)
}

func testOdd(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	svc.seen = summary
	svc.identify = func(msg *message.Message) (string, error) { return msg.Metadata.Get(fieldCase), nil }
	publisher := s.env.Publisher()
	t.Cleanup(func() {
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	})
	svc.outside = func(*member) message.HandlerMiddleware {
		poison, err := middleware.PoisonQueueWithFilter(publisher, s.poison, inboxmw.ToPoison)
		if err != nil {
			t.Fatal(err)
		}
		return poison
	}
	svc.start(t)
	poisoned := listen(t, s.env.Subscriber(s.poison, groupPoison), s.poison)

	var processed, refused []string
	sent := map[string]string{}
	for i, odd := range oddMessages() {
		healthy := fmt.Sprintf("healthy-%d", i)
		for _, m := range []oddMessage{odd, {name: healthy, uuid: healthy}} {
			msg := message.NewMessage(m.uuid, m.payload)
			if m.payload == nil {
				msg.Payload = payload(m.name)
			}
			for k, v := range m.metadata {
				msg.Metadata.Set(k, v)
			}
			msg.Metadata.Set(fieldCase, m.name)
			err := s.producer.Publish(s.orders, msg)
			if reason, refuses := b.Refuses[m.name]; refuses != (err != nil) {
				t.Errorf("%s: publishing it gives %v, it is refused as %q", m.name, err, reason)
			}
			switch {
			case err != nil:
			case m.poisoned || b.Unnamed[m.name] != "":
				refused = append(refused, m.name)
			default:
				processed = append(processed, m.name)
				sent[m.name] = summary(msg)
			}
		}
	}
	s.wantOnce(t, theConsumer, processed...)
	eventually(t, "what was refused is in the poison queue", func() (bool, string) {
		return covers(poisoned.poisoned(), refused)
	})
	for id, reason := range poisoned.poisoned() {
		if !slices.Contains(refused, id) || !strings.Contains(reason, inbox.ErrInvalidKey.Error()) {
			t.Errorf("%s is in the poison queue: %s", id, reason)
		}
	}
	for id, e := range s.db.committed(t, theConsumer) {
		if reason, alters := b.Alters[id]; alters == (e.seen == sent[id]) {
			t.Errorf("%s: the handler saw %s of %s, altered as %q", id, e.seen, sent[id], reason)
		}
	}
}

func testOddTopic(t *testing.T, b Broker) {
	s := newScene(t, b, stage{odd: b.OddTopic})
	svc := newService(s)
	svc.publishing = failing(newAttempts())
	svc.start(t)
	ids, orders := newOrders(10)
	s.publish(t, orders...)
	s.wantOnce(t, theConsumer, ids...)
}
