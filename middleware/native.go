package inboxmw

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// KafkaRecord is the place of a message in Kafka: topic, partition, offset and
// the record's timestamp, as offsets start again when a topic is made anew. It
// finds every redelivery of a record, and misses a message that the producer has
// sent twice; where producers set ids, prefer those:
//
//	inboxmw.FirstOf(inboxmw.UUID, inboxmw.KafkaRecord(
//		kafka.MessagePartitionFromCtx, kafka.MessagePartitionOffsetFromCtx, kafka.MessageTimestampFromCtx))
//
// The arguments are those functions of watermill-kafka, which this package does
// not import. A message that has no partition or offset does not carry the part;
// a negative one is an error.
func KafkaRecord(
	partition func(context.Context) (int32, bool),
	offset func(context.Context) (int64, bool),
	timestamp func(context.Context) (time.Time, bool),
) Part {
	if partition == nil || offset == nil || timestamp == nil {
		panic("inboxmw: KafkaRecord needs the three functions of watermill-kafka")
	}
	return func(msg *message.Message) (string, error) {
		ctx := msg.Context()
		p, hasPartition := partition(ctx)
		o, hasOffset := offset(ctx)
		switch {
		case !hasPartition || !hasOffset:
			return "", nil
		case p < 0 || o < 0:
			return "", fmt.Errorf("the message has partition %d and offset %d", p, o)
		}
		at := int64(0)
		if t, ok := timestamp(ctx); ok {
			at = t.UnixMilli()
		}
		topic := message.SubscribeTopicFromCtx(ctx)
		return encodeTagged(kindKafka, escape(topic)+":"+strconv.Itoa(int(p))+":"+strconv.FormatInt(o, 10)+":"+strconv.FormatInt(at, 10)), nil
	}
}
