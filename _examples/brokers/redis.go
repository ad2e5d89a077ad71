package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

func openRedis(ctx context.Context, s setting) (*broker, error) {
	connect := func() *redis.Client { return redis.NewClient(&redis.Options{Addr: s.server}) }
	client := connect()
	reach, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Ping(reach).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("redis cannot be reached: start it with docker compose up --detach --wait redis, or say with -server where yours is: %w", err), client.Close())
	}
	return &broker{
		publisher: func() (message.Publisher, error) {
			return redisstream.NewPublisher(redisstream.PublisherConfig{Client: connect()}, s.logger)
		},
		subscriber: func(topic string) (message.Subscriber, error) {
			return redisstream.NewSubscriber(redisstream.SubscriberConfig{
				Client:        connect(), // which Close closes
				ConsumerGroup: topic,
				ClaimInterval: quiet / 6,
				MaxIdleTime:   quiet / 3,
			}, s.logger)
		},
		close: func() error { return errors.Join(deleteStreams(ctx, client, s.orders, s.invoices), client.Close()) },
	}, nil
}

// deleteStreams deletes those of the topics, also when ctx has ended.
func deleteStreams(ctx context.Context, client *redis.Client, topics ...string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return client.Del(ctx, topics...).Err()
}
