package outbox_test

import (
	"database/sql"
	"testing"
	"time"

	sqlv3 "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// flavour is a version of watermill-sql with one of its schemas, on a database.
type flavour struct {
	name   string
	server *server
	driver string

	inTx      func(tx *sql.Tx) (message.Publisher, error)
	publisher func(db *sql.DB) (message.Publisher, error)
	// ackDeadline nil is the default, half a minute.
	subscriber func(db *sql.DB, ackDeadline *time.Duration) (source, error)
}

// source is a subscriber that can make its tables.
type source interface {
	message.Subscriber
	SubscribeInitialize(topic string) error
}

// poll keeps the tests short.
const poll = 20 * time.Millisecond

// flavours are those of database/sql. A batch of one is what the queue schema
// needs; the others have a small one, so that several are on their way.
func flavours() []flavour {
	return []flavour{
		flavourV3("v3 on PostgreSQL through lib/pq", postgresServer, "postgres",
			sqlv3.DefaultPostgreSQLSchema{SubscribeBatchSize: 10}, sqlv3.DefaultPostgreSQLOffsetsAdapter{}),
		flavourV3("v3 on PostgreSQL through pgx", postgresServer, "pgx",
			sqlv3.DefaultPostgreSQLSchema{SubscribeBatchSize: 10}, sqlv3.DefaultPostgreSQLOffsetsAdapter{}),
		flavourV4("v4 on PostgreSQL, default schema", postgresServer, "pgx",
			sqlv4.DefaultPostgreSQLSchema{SubscribeBatchSize: 10}, sqlv4.DefaultPostgreSQLOffsetsAdapter{}),
		flavourV4("v4 on PostgreSQL, queue schema", postgresServer, "pgx",
			sqlv4.PostgreSQLQueueSchema{SubscribeBatchSize: 1}, sqlv4.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true}),
		flavourV3("v3 on MariaDB", mariadbServer, "mysql",
			sqlv3.DefaultMySQLSchema{SubscribeBatchSize: 1}, sqlv3.DefaultMySQLOffsetsAdapter{}),
		flavourV4("v4 on MariaDB, default schema", mariadbServer, "mysql",
			sqlv4.DefaultMySQLSchema{SubscribeBatchSize: 1}, sqlv4.DefaultMySQLOffsetsAdapter{}),
		flavourV4("v4 on MariaDB, queue schema", mariadbServer, "mysql",
			sqlv4.MySQLQueueSchema{SubscribeBatchSize: 1}, sqlv4.MySQLQueueOffsetsAdapter{DeleteOnAck: true}),
	}
}

func flavourV3(name string, s *server, driver string, schema sqlv3.SchemaAdapter, offsets sqlv3.OffsetsAdapter) flavour {
	config := sqlv3.PublisherConfig{SchemaAdapter: schema}
	return flavour{
		name: name, server: s, driver: driver,
		inTx:      func(tx *sql.Tx) (message.Publisher, error) { return sqlv3.NewPublisher(tx, config, nil) },
		publisher: func(db *sql.DB) (message.Publisher, error) { return sqlv3.NewPublisher(db, config, nil) },
		subscriber: func(db *sql.DB, ackDeadline *time.Duration) (source, error) {
			return sqlv3.NewSubscriber(db, sqlv3.SubscriberConfig{
				SchemaAdapter: schema, OffsetsAdapter: offsets, AckDeadline: ackDeadline,
				PollInterval: poll, ResendInterval: poll, RetryInterval: poll,
			}, nil)
		},
	}
}

func flavourV4(name string, s *server, driver string, schema sqlv4.SchemaAdapter, offsets sqlv4.OffsetsAdapter) flavour {
	config := sqlv4.PublisherConfig{SchemaAdapter: schema}
	return flavour{
		name: name, server: s, driver: driver,
		inTx: func(tx *sql.Tx) (message.Publisher, error) {
			return sqlv4.NewPublisher(sqlv4.TxFromStdSQL(tx), config, nil)
		},
		publisher: func(db *sql.DB) (message.Publisher, error) {
			return sqlv4.NewPublisher(sqlv4.BeginnerFromStdSQL(db), config, nil)
		},
		subscriber: func(db *sql.DB, ackDeadline *time.Duration) (source, error) {
			return sqlv4.NewSubscriber(sqlv4.BeginnerFromStdSQL(db), sqlv4.SubscriberConfig{
				SchemaAdapter: schema, OffsetsAdapter: offsets, AckDeadline: ackDeadline,
				PollInterval: poll, ResendInterval: poll, RetryInterval: poll,
			}, nil)
		},
	}
}

// policy is the outbox of the flavour, without an envelope.
func (f flavour) policy() inboxmw.ProducedPolicy { return inboxmw.Outbox(f.inTx) }

// makeTopics makes the tables of topics, and drops them after the test.
func (f flavour) makeTopics(t *testing.T, d *database, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		d.drop(t, "watermill_"+topic, "watermill_offsets_"+topic)
		if err := f.source(t, d).SubscribeInitialize(topic); err != nil {
			t.Fatal(err)
		}
	}
}

func (f flavour) source(t *testing.T, d *database) source {
	t.Helper()
	s, err := f.subscriber(d.DB, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// publish publishes outside of any transaction.
func (f flavour) publish(t *testing.T, d *database, topic string, messages ...*message.Message) {
	t.Helper()
	publisher, err := f.publisher(d.DB)
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Publish(topic, messages...); err != nil {
		t.Fatal(err)
	}
}
