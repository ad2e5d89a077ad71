package crash_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	wmsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"

	integrated "github.com/watermill-inbox/inbox/internal/integration/brokers"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

// handOver is after what time a broker gives the messages of a dead worker to
// another one, where it does not see the connection break.
const handOver = time.Second

// group is that of the workers, and the one that reads the outputs.
const group = "group"

// broker is where a worker finds its broker.
type broker struct {
	Name    string
	Address string
	In, Out string // topics
}

// newBroker makes the topics of a cell.
func newBroker(t *testing.T, name, suffix string) broker {
	t.Helper()
	b := broker{Name: name, In: "in" + suffix, Out: "out" + suffix}
	switch name {
	case "Kafka":
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, b.In, b.Out))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		b.Address = cluster.ListenAddrs()[0]
	case "RabbitMQ":
		servers.RabbitMQ.Need(t)
		b.Address = servers.RabbitMQ.Address()
		b.makeQueues(t)
	case "NATS":
		b.Address = b.startNATS(t)
	case "SQL":
		servers.Postgres.Need(t)
		b.Address = servers.Postgres.Address()
		b.makeTables(t)
	case "Redis":
		servers.Redis.Need(t)
		b.Address = servers.Redis.Address()
		t.Cleanup(func() {
			client := redis.NewClient(&redis.Options{Addr: b.Address})
			if err := client.Del(context.WithoutCancel(t.Context()), b.In, b.Out).Err(); err != nil {
				t.Error(err)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return b
}

func (b broker) amqp() amqp.Config {
	config := amqp.NewDurablePubSubConfig(b.Address, amqp.GenerateQueueNameTopicNameWithSuffix(group))
	config.Publish.ConfirmDelivery = true // else a publish that the broker lost is taken for done
	config.Consume.Qos.PrefetchCount = 10
	return config
}

func (b broker) makeQueues(t *testing.T) {
	t.Helper()
	subscriber, err := amqp.NewSubscriber(b.amqp(), watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{b.In, b.Out} {
		if err := subscriber.SubscribeInitialize(topic); err != nil {
			t.Fatal(err)
		}
	}
	if err := subscriber.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		connection, err := amqp091.Dial(b.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close() //nolint:errcheck // all is deleted
		channel, err := connection.Channel()
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range []string{b.In, b.Out} {
			if _, err := channel.QueueDelete(b.amqp().Queue.GenerateName(topic), false, false, false); err != nil {
				t.Error(err)
			}
			if err := channel.ExchangeDelete(topic, false, false); err != nil {
				t.Error(err)
			}
		}
	})
}

// startNATS makes the consumers too: one that a subscriber makes of itself is
// deleted by its Close.
func (b broker) startNATS(t *testing.T) string {
	t.Helper()
	server, err := natsd.NewServer(&natsd.Options{
		Host: "127.0.0.1", Port: natsd.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() {
		server.Shutdown()
		server.WaitForShutdown()
	})
	if !server.ReadyForConnections(patience) {
		t.Fatal("NATS does not start")
	}
	connection, err := nats.Connect(server.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	stream, err := connection.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{b.In, b.Out} {
		if _, err := stream.AddStream(&nats.StreamConfig{Name: topic, Subjects: []string{topic}}); err != nil {
			t.Fatal(err)
		}
		_, err := stream.AddConsumer(topic, &nats.ConsumerConfig{
			Durable: group + topic, DeliverSubject: "deliver." + topic, DeliverGroup: group + topic,
			AckPolicy: nats.AckExplicitPolicy, AckWait: handOver, MaxAckPending: 10,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return server.ClientURL()
}

func schema() wmsql.SchemaAdapter {
	return integrated.SQLv4Schema{SchemaAdapter: wmsql.DefaultPostgreSQLSchema{SubscribeBatchSize: 10}}
}

func offsets() wmsql.DefaultPostgreSQLOffsetsAdapter { return wmsql.DefaultPostgreSQLOffsetsAdapter{} }

// makeTables makes those of SQL Pub/Sub, in PostgreSQL whatever the database of the
// inbox is.
func (b broker) makeTables(t *testing.T) {
	t.Helper()
	db, err := sql.Open("pgx", b.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, topic := range []string{b.In, b.Out} {
			for _, table := range []string{wmsql.DefaultPostgreSQLSchema{}.MessagesTable(topic), offsets().MessagesOffsetsTable(topic)} {
				if _, err := db.ExecContext(context.WithoutCancel(t.Context()), "DROP TABLE IF EXISTS "+table); err != nil {
					t.Error(err)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, topic := range []string{b.In, b.Out} {
		subscriber, err := wmsql.NewSubscriber(wmsql.BeginnerFromStdSQL(db), wmsql.SubscriberConfig{
			ConsumerGroup: group, SchemaAdapter: schema(), OffsetsAdapter: offsets(),
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := subscriber.SubscribeInitialize(topic); err != nil {
			t.Fatal(err)
		}
		if err := subscriber.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func (b broker) publisher() (message.Publisher, error) {
	switch b.Name {
	case "Kafka":
		config := kafka.DefaultSaramaSyncPublisherConfig()
		config.Metadata.Retry.Backoff = 50 * time.Millisecond
		return kafka.NewPublisher(kafka.PublisherConfig{
			Brokers: []string{b.Address}, Marshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: config,
		}, nil)
	case "RabbitMQ":
		return amqp.NewPublisher(b.amqp(), watermill.NopLogger{})
	case "SQL":
		db, err := sql.Open("pgx", b.Address)
		if err != nil {
			return nil, err
		}
		return wmsql.NewPublisher(wmsql.BeginnerFromStdSQL(db), wmsql.PublisherConfig{SchemaAdapter: schema()}, nil)
	case "NATS":
		return wmnats.NewPublisher(wmnats.PublisherConfig{URL: b.Address}, nil)
	case "Redis":
		return redisstream.NewPublisher(redisstream.PublisherConfig{Client: redis.NewClient(&redis.Options{Addr: b.Address})}, nil)
	}
	return nil, fmt.Errorf("no broker %q", b.Name)
}

func (b broker) subscriber(topic string) (message.Subscriber, error) {
	switch b.Name {
	case "Kafka":
		config := kafka.DefaultSaramaSubscriberConfig()
		config.Consumer.Offsets.Initial = sarama.OffsetOldest // by default a new group gets nothing of what is there
		config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
		config.Consumer.Group.Rebalance.Timeout = handOver
		return kafka.NewSubscriber(kafka.SubscriberConfig{
			Brokers: []string{b.Address}, Unmarshaler: kafka.DefaultMarshaler{}, ConsumerGroup: group + topic,
			OverwriteSaramaConfig: config, NackResendSleep: kafka.NoSleep, ReconnectRetrySleep: 50 * time.Millisecond,
		}, nil)
	case "RabbitMQ":
		return amqp.NewSubscriber(b.amqp(), watermill.NopLogger{})
	case "SQL":
		db, err := sql.Open("pgx", b.Address)
		if err != nil {
			return nil, err
		}
		return wmsql.NewSubscriber(wmsql.BeginnerFromStdSQL(db), wmsql.SubscriberConfig{
			ConsumerGroup: group, SchemaAdapter: schema(), OffsetsAdapter: offsets(),
			PollInterval: handOver / 100, ResendInterval: handOver / 100, RetryInterval: handOver / 100,
		}, nil)
	case "NATS":
		return wmnats.NewSubscriber(wmnats.SubscriberConfig{
			URL: b.Address, QueueGroupPrefix: group + topic,
			JetStream: wmnats.JetStreamConfig{
				DurablePrefix:    group + topic,
				SubscribeOptions: []nats.SubOpt{nats.Bind(topic, group+topic), nats.ManualAck()},
			},
		}, nil)
	case "Redis":
		return redisstream.NewSubscriber(redisstream.SubscriberConfig{
			Client: redis.NewClient(&redis.Options{Addr: b.Address}), ConsumerGroup: group,
			ClaimInterval: handOver / 10, MaxIdleTime: handOver, DisableIndefiniteInitialBlock: true,
		}, nil)
	}
	return nil, fmt.Errorf("no broker %q", b.Name)
}
