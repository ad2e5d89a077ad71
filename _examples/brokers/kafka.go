package main

import (
	"context"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kfake"
)

// openKafka starts a Kafka in this process.
func openKafka(_ context.Context, s setting) (*broker, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, s.orders, s.invoices))
	if err != nil {
		return nil, err
	}
	return &broker{
		publisher: func() (message.Publisher, error) {
			return kafka.NewPublisher(kafka.PublisherConfig{
				Brokers:   cluster.ListenAddrs(),
				Marshaler: kafka.DefaultMarshaler{},
			}, s.logger)
		},
		subscriber: func(topic string) (message.Subscriber, error) {
			config := kafka.DefaultSaramaSubscriberConfig()
			config.Consumer.Offsets.Initial = sarama.OffsetOldest
			config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond // members soon learn of each other
			return kafka.NewSubscriber(kafka.SubscriberConfig{
				Brokers:               cluster.ListenAddrs(),
				Unmarshaler:           kafka.DefaultMarshaler{},
				ConsumerGroup:         topic,
				OverwriteSaramaConfig: config,
				NackResendSleep:       10 * time.Millisecond,
			}, s.logger)
		},
		close: func() error {
			cluster.Close()
			return nil
		},
	}, nil
}
