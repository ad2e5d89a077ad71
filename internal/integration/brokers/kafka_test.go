package brokers_test

import (
	"net"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestKafka(t *testing.T) {
	t.Parallel()
	runSuite(t, Broker{
		Name:     "Kafka",
		Open:     openKafka,
		OddTopic: "-._..aA",
		Refuses: map[string]string{
			oddLarge: "the client takes no message above 1 MB (Producer.MaxMessageBytes), as brokers do by default",
		},
	})
}

// openKafka has a Kafka in this process, of one broker.
func openKafka(t *testing.T, s Setting) *Env {
	t.Helper()
	k := &kafkaCluster{t: t, setting: s, door: newDoor(t), data: t.TempDir()}
	k.start()
	t.Cleanup(func() { k.Close() })
	return &Env{
		Publisher:  k.publisher,
		Subscriber: k.subscriber,
		Database:   func() *database { return newSQLite(t) },
		Foreign:    k.foreign,
		Native: inboxmw.KafkaRecord(
			kafka.MessagePartitionFromCtx, kafka.MessagePartitionOffsetFromCtx, kafka.MessageTimestampFromCtx),
		Interrupt: func() {
			k.door.shut()
			k.Close()
			k.start()
		},
		RefuseAcks: k.refuseCommits,
	}
}

type kafkaCluster struct {
	*kfake.Cluster
	t       *testing.T
	setting Setting
	door    *door
	data    string
	refused *kfake.FaultHandle
}

// advertised is a listener whose clients are told another address.
type advertised struct {
	net.Listener
	address net.Addr
}

func (l advertised) Addr() net.Addr { return l.address }

// start starts the cluster with the data that it had.
func (k *kafkaCluster) start() {
	k.t.Helper()
	var behind string
	listen := func(network, _ string) (net.Listener, error) {
		var config net.ListenConfig
		listener, err := config.Listen(k.t.Context(), network, "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		behind = listener.Addr().String()
		return advertised{listener, k.door.listener.Addr()}, nil
	}
	names := make([]string, 0, len(k.setting.Topics))
	for _, topic := range k.setting.Topics {
		names = append(names, topic.Name)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, names...), kfake.DataDir(k.data), kfake.ListenFn(listen))
	if err != nil {
		k.t.Fatal(err)
	}
	k.Cluster = cluster
	k.door.lead(behind)
}

func (k *kafkaCluster) brokers() []string { return []string{k.door.address()} }

func (k *kafkaCluster) publisher() message.Publisher {
	k.t.Helper()
	config := kafka.DefaultSaramaSyncPublisherConfig()
	config.Metadata.Retry.Backoff = 50 * time.Millisecond // two seconds by default
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{
		Brokers:               k.brokers(),
		Marshaler:             kafka.DefaultMarshaler{},
		OverwriteSaramaConfig: config,
	}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	return &orderly{Publisher: publisher}
}

func (k *kafkaCluster) subscriber(_, group string) message.Subscriber {
	k.t.Helper()
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest // by default a new group gets nothing of what is there
	config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	config.Consumer.Group.Rebalance.Timeout = k.setting.HandOver
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers:               k.brokers(),
		Unmarshaler:           kafka.DefaultMarshaler{},
		ConsumerGroup:         group,
		OverwriteSaramaConfig: config,
		NackResendSleep:       kafka.NoSleep,
		ReconnectRetrySleep:   50 * time.Millisecond,
	}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	return subscriber
}

// foreign publishes a record that has a value and nothing else.
func (k *kafkaCluster) foreign(topic, payload string) {
	k.t.Helper()
	producer, err := sarama.NewSyncProducer(k.brokers(), kafka.DefaultSaramaSyncPublisherConfig())
	if err != nil {
		k.t.Fatal(err)
	}
	defer producer.Close() //nolint:errcheck // the message is acknowledged
	if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(payload)}); err != nil {
		k.t.Fatal(err)
	}
}

// refuseCommits refuses the commits of offsets, which are the acks of Kafka.
func (k *kafkaCluster) refuseCommits(refuse bool) {
	k.t.Helper()
	if refuse {
		k.refused = k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1})
		return
	}
	if k.refused.Hits() == 0 {
		k.t.Error("no commit was refused")
	}
	k.refused.Remove()
}
