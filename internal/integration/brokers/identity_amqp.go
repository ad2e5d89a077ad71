package brokers

import (
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp091 "github.com/rabbitmq/amqp091-go"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// AMQPMessageID is the metadata field that [AMQPMarshaler] sets.
const AMQPMessageID = "amqp_message_id"

// AMQPMarshaler keeps the property message-id, which watermill-amqp drops. It is
// for Config.Marshaler. An AMQP broker gives a message no identity of its own: the
// property is the producer's, and one that sets none has to be asked to.
type AMQPMarshaler struct{ amqp.DefaultMarshaler }

// Unmarshal implements the Marshaler of watermill-amqp.
func (m AMQPMarshaler) Unmarshal(d amqp091.Delivery) (*message.Message, error) {
	msg, err := m.DefaultMarshaler.Unmarshal(d)
	if err != nil {
		return nil, err
	}
	delete(msg.Metadata, AMQPMessageID) // a header of that name is not the property
	if d.MessageId != "" {
		msg.Metadata.Set(AMQPMessageID, d.MessageId)
	}
	return msg, nil
}

// AMQPRecord is the message-id that [AMQPMarshaler] keeps, as a key. It finds
// every redelivery, and a message that the producer has sent twice under one id.
// Ids of several producers may meet: set a source where they do.
func AMQPRecord() inboxmw.Part {
	return inboxmw.Tagged("amqp", inboxmw.Metadata(AMQPMessageID))
}
