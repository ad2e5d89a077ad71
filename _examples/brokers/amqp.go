package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// openAMQP uses a durable queue for each topic. Its readers are a group.
func openAMQP(_ context.Context, s setting) (*broker, error) {
	config := amqp.NewDurableQueueConfig(s.server)
	config.Publish.ConfirmDelivery = true // else a publish that the broker lost is taken for done
	conn, err := amqp091.Dial(config.Connection.AmqpURI)
	if err != nil {
		return nil, fmt.Errorf("RabbitMQ cannot be reached: start it with docker compose up --detach --wait rabbitmq, or say with -server where yours is: %w", err)
	}
	return &broker{
		publisher:  func() (message.Publisher, error) { return amqp.NewPublisher(config, s.logger) },
		subscriber: func(string) (message.Subscriber, error) { return amqp.NewSubscriber(config, s.logger) },
		close:      func() error { return errors.Join(deleteQueues(conn, s.orders, s.invoices), conn.Close()) },
	}, nil
}

func deleteQueues(conn *amqp091.Connection, names ...string) error {
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := channel.QueueDelete(name, false, false, false); err != nil {
			return err
		}
	}
	return channel.Close()
}
