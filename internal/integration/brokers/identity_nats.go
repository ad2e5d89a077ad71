package brokers

import (
	"strconv"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// The metadata fields that [NATSUnmarshaler] sets.
const (
	NATSStream    = "nats_stream"
	NATSSequence  = "nats_sequence"
	NATSTimestamp = "nats_timestamp"
)

// NATSUnmarshaler keeps the place of a message in its JetStream stream, which
// watermill-nats drops: stream, sequence, and the time at which it was stored, as
// sequences start again when a stream is made anew. It is for
// SubscriberConfig.Unmarshaler. A message from outside of JetStream has no place.
type NATSUnmarshaler struct{ wmnats.NATSMarshaler }

// Unmarshal implements the Unmarshaler of watermill-nats.
func (u *NATSUnmarshaler) Unmarshal(m *nats.Msg) (*message.Message, error) {
	msg, err := u.NATSMarshaler.Unmarshal(m)
	if err != nil {
		return nil, err
	}
	for _, field := range []string{NATSStream, NATSSequence, NATSTimestamp} {
		delete(msg.Metadata, field) // a producer does not say where its message is stored
	}
	if place, err := m.Metadata(); err == nil {
		msg.Metadata.Set(NATSStream, place.Stream)
		msg.Metadata.Set(NATSSequence, strconv.FormatUint(place.Sequence.Stream, 10))
		msg.Metadata.Set(NATSTimestamp, strconv.FormatInt(place.Timestamp.UnixNano(), 10))
	}
	return msg, nil
}

// NATSRecord is the place that [NATSUnmarshaler] keeps, as a key. It finds every
// redelivery, and misses a message that the producer has sent twice.
func NATSRecord() inboxmw.Part {
	return inboxmw.Tagged("nats", inboxmw.Joined(
		inboxmw.Metadata(NATSStream), inboxmw.Metadata(NATSSequence), inboxmw.Metadata(NATSTimestamp)))
}
