package outbox_test

import (
	"database/sql"

	sqlv3 "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// What docs/outbox.md shows stands here word for word, see TestGuide.

// outboxV3 is the outbox of watermill-sql v3.
func outboxV3() inboxmw.ProducedPolicy {
	return inboxmw.Outbox(func(tx *sql.Tx) (message.Publisher, error) {
		return sqlv3.NewPublisher(tx, sqlv3.PublisherConfig{
			SchemaAdapter: sqlv3.DefaultPostgreSQLSchema{},
		}, nil)
	})
}

// outboxV4 is the outbox of watermill-sql v4.
func outboxV4() inboxmw.ProducedPolicy {
	return inboxmw.Outbox(func(tx *sql.Tx) (message.Publisher, error) {
		return sqlv4.NewPublisher(sqlv4.TxFromStdSQL(tx), sqlv4.PublisherConfig{
			SchemaAdapter: sqlv4.PostgreSQLQueueSchema{},
		}, nil)
	})
}

// enveloped is outboxV4 with the envelope of the forwarder: one table for all topics.
func enveloped(outboxTopic string) inboxmw.ProducedPolicy {
	return inboxmw.Outbox(func(tx *sql.Tx) (message.Publisher, error) {
		publisher, err := sqlv4.NewPublisher(sqlv4.TxFromStdSQL(tx), sqlv4.PublisherConfig{
			SchemaAdapter: sqlv4.PostgreSQLQueueSchema{},
		}, nil)
		if err != nil {
			return nil, err
		}
		return forwarder.NewPublisher(publisher, forwarder.PublisherConfig{ForwarderTopic: outboxTopic}), nil
	})
}

// relaySource is what the relay of outboxV4 or enveloped reads from.
func relaySource(db *sql.DB) (*sqlv4.Subscriber, error) {
	return sqlv4.NewSubscriber(sqlv4.BeginnerFromStdSQL(db), sqlv4.SubscriberConfig{
		SchemaAdapter:  sqlv4.PostgreSQLQueueSchema{SubscribeBatchSize: 1}, // more loses messages
		OffsetsAdapter: sqlv4.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true},
	}, nil)
}

// makeTables is run once, before the first message: as a migration, or at start.
func makeTables(db *sql.DB, topics ...string) error {
	source, err := relaySource(db)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if err := source.SubscribeInitialize(topic); err != nil {
			return err
		}
	}
	return source.Close()
}
