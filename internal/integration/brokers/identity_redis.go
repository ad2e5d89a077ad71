package brokers

import (
	"context"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// The fields that [RedisEntryIDs] puts into an entry, and [RedisUnmarshaller] into
// the metadata.
const (
	RedisStream = "redis_stream"
	RedisEntry  = "redis_entry"
)

// RedisEntryIDs puts the stream and the id of each entry that a client reads into
// the values of the entry, as watermill-redisstream hands nothing else to its
// unmarshaller. Add it to the client of the subscriber:
//
//	client.AddHook(brokers.RedisEntryIDs{})
type RedisEntryIDs struct{}

var _ redis.Hook = RedisEntryIDs{}

// DialHook changes nothing.
func (RedisEntryIDs) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing: the subscriber reads without pipelines.
func (RedisEntryIDs) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook marks what XREADGROUP, XREAD and XCLAIM read.
func (RedisEntryIDs) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		switch read := cmd.(type) {
		case *redis.XStreamSliceCmd:
			for _, s := range read.Val() {
				markEntries(s.Stream, s.Messages)
			}
		case *redis.XMessageSliceCmd: // XCLAIM stream …
			if stream, ok := read.Args()[1].(string); ok {
				markEntries(stream, read.Val())
			}
		}
		return err
	}
}

func markEntries(stream string, entries []redis.XMessage) {
	for _, e := range entries {
		if e.Values != nil { // the entry was deleted
			e.Values[RedisStream], e.Values[RedisEntry] = stream, e.ID
		}
	}
}

// RedisUnmarshaller takes the marks of [RedisEntryIDs] into the metadata, and an
// entry without a UUID for a message without one: the default ends the
// subscription at it. It is for SubscriberConfig.Unmarshaller.
type RedisUnmarshaller struct {
	redisstream.DefaultMarshallerUnmarshaller
}

// Unmarshal implements the Unmarshaller of watermill-redisstream.
func (u RedisUnmarshaller) Unmarshal(values map[string]any) (*message.Message, error) {
	if values[redisstream.UUIDHeaderKey] == nil {
		values[redisstream.UUIDHeaderKey] = ""
	}
	msg, err := u.DefaultMarshallerUnmarshaller.Unmarshal(values)
	if err != nil {
		return nil, err
	}
	for _, field := range []string{RedisStream, RedisEntry} {
		delete(msg.Metadata, field) // a producer does not say where its message is stored
		if value, ok := values[field].(string); ok {
			msg.Metadata.Set(field, value)
		}
	}
	return msg, nil
}

// RedisRecord is the place that [RedisUnmarshaller] keeps, as a key: the stream,
// and the id of the entry, which has the time in it. It finds every redelivery,
// and misses a message that the producer has sent twice.
func RedisRecord() inboxmw.Part {
	return inboxmw.Tagged("redis", inboxmw.Joined(inboxmw.Metadata(RedisStream), inboxmw.Metadata(RedisEntry)))
}
