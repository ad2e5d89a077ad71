package brokers_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	"github.com/watermill-inbox/inbox/internal/integration/brokers"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	runSuite(t, Broker{
		Name:     "redis",
		Reach:    servers.Redis.Need,
		Open:     openRedis,
		OddTopic: " \r\n\x00\xff/{*}ü",
	})
}

// openRedis has a stream for each topic, from whose first entry on a group reads.
func openRedis(t *testing.T, s Setting) *Env {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: servers.Redis.Address()})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, topic := range s.Topics {
			if err := client.Del(ctx, topic.Name).Err(); err != nil {
				t.Errorf("delete a stream: %v", err)
			}
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	door := newDoor(t)
	door.lead(servers.Redis.Address())
	acks := &lostAcks{}
	return &Env{
		Publisher: func() message.Publisher {
			p, err := redisstream.NewPublisher(redisstream.PublisherConfig{
				Client: redis.NewClient(&redis.Options{Addr: door.address()}),
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return &orderly{Publisher: p}
		},
		Subscriber: func(_, group string) message.Subscriber {
			reader := redis.NewClient(&redis.Options{Addr: door.address()}) // Close of the subscriber closes it
			reader.AddHook(brokers.RedisEntryIDs{})
			reader.AddHook(acks)
			s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
				Client:        reader,
				Unmarshaller:  brokers.RedisUnmarshaller{},
				ConsumerGroup: group,
				ClaimInterval: s.HandOver / 10,
				MaxIdleTime:   s.HandOver,
				// Of itself the first read waits for ever, also on a connection that
				// is dead and does not know it.
				DisableIndefiniteInitialBlock: true,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Database: func() *database { return newSQLite(t) },
		Foreign: func(topic, payload string) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			entry := &redis.XAddArgs{Stream: topic, Values: map[string]any{"payload": payload}}
			if err := client.XAdd(ctx, entry).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Native: brokers.RedisRecord(),
		Interrupt: func() {
			door.shut()
			door.lead(servers.Redis.Address())
		},
		RefuseAcks: acks.lose.Store,
	}
}

// lostAcks loses acks that were replied to, as a failover does to a replica that
// does not have them yet. At an ack with an error the subscriber stays until it is
// taken, and reads no more.
type lostAcks struct{ lose atomic.Bool }

func (*lostAcks) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lostAcks) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lostAcks) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ack, ok := cmd.(*redis.IntCmd); ok && cmd.Name() == "xack" && l.lose.Load() {
			ack.SetVal(1)
			return nil
		}
		return next(ctx, cmd)
	}
}
