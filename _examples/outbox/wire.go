package main

import (
	"database/sql"
	"encoding/json"

	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
)

// The broker is PostgreSQL as well, so that one server is all you need. Any other
// one would do for ordersTopic and invoicesTopic.
const (
	ordersTopic   = "orders"
	outboxTopic   = "outbox"
	invoicesTopic = "invoices"
)

// order is what both topics carry.
type order struct {
	ID       string `json:"id"`
	Quantity int    `json:"quantity"`
	Cents    int64  `json:"cents"`
}

func (o order) encode() message.Payload {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

// openOutbox opens the outbox in the transaction of a handler.
func openOutbox(tx *sql.Tx) (message.Publisher, error) {
	to, err := sqlv4.NewPublisher(sqlv4.TxFromStdSQL(tx), sqlv4.PublisherConfig{SchemaAdapter: sqlv4.PostgreSQLQueueSchema{}}, nil)
	if err != nil {
		return nil, err
	}
	return forwarder.NewPublisher(to, forwarder.PublisherConfig{ForwarderTopic: outboxTopic}), nil
}

func publisher(db *sql.DB) (message.Publisher, error) {
	return sqlv4.NewPublisher(sqlv4.BeginnerFromStdSQL(db), sqlv4.PublisherConfig{SchemaAdapter: sqlv4.PostgreSQLQueueSchema{}}, nil)
}

func subscriber(db *sql.DB) (*sqlv4.Subscriber, error) {
	return sqlv4.NewSubscriber(sqlv4.BeginnerFromStdSQL(db), sqlv4.SubscriberConfig{
		SchemaAdapter:  sqlv4.PostgreSQLQueueSchema{SubscribeBatchSize: 1}, // more loses messages
		OffsetsAdapter: sqlv4.PostgreSQLQueueOffsetsAdapter{},
		PollInterval:   poll,
	}, nil)
}

// makeTopic makes the table of a topic: in the transaction of a handler it is too late.
func makeTopic(db *sql.DB, topic string) error {
	s, err := subscriber(db)
	if err != nil {
		return err
	}
	return s.SubscribeInitialize(topic)
}
