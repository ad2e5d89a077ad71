package main

import (
	"context"
	"errors"
	"os"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// openNATS starts a NATS with JetStream in this process.
func openNATS(_ context.Context, s setting) (*broker, error) {
	dir, err := os.MkdirTemp("", "inbox-brokers-nats-")
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	srv.Start()
	b := &broker{
		publisher: func() (message.Publisher, error) {
			return wmnats.NewPublisher(wmnats.PublisherConfig{URL: srv.ClientURL()}, s.logger)
		},
		subscriber: func(topic string) (message.Subscriber, error) {
			return wmnats.NewSubscriber(wmnats.SubscriberConfig{
				URL:              srv.ClientURL(),
				QueueGroupPrefix: topic,
				JetStream: wmnats.JetStreamConfig{
					DurablePrefix:    topic,
					SubscribeOptions: []nats.SubOpt{nats.Bind(topic, topic), nats.ManualAck()},
				},
			}, s.logger)
		},
		close: func() error {
			srv.Shutdown()
			srv.WaitForShutdown()
			return os.RemoveAll(dir)
		},
	}
	if !srv.ReadyForConnections(10 * time.Second) {
		return nil, errors.Join(errors.New("the NATS server does not start"), b.close())
	}
	if err := makeStreams(srv.ClientURL(), s.orders, s.invoices); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// makeStreams makes a stream and its durable consumer for each topic. One that
// Subscribe makes is deleted by Close, and all messages then come again.
func makeStreams(url string, topics ...string) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.JetStream()
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if _, err := stream.AddStream(&nats.StreamConfig{Name: topic, Subjects: []string{topic}}); err != nil {
			return err
		}
		_, err := stream.AddConsumer(topic, &nats.ConsumerConfig{
			Durable:        topic,
			DeliverSubject: "deliver." + topic,
			DeliverGroup:   topic,
			AckPolicy:      nats.AckExplicitPolicy,
			AckWait:        quiet / 3,
			MaxAckPending:  8, // AckWait also runs for what waits in a member
		})
		if err != nil {
			return err
		}
	}
	return nil
}
