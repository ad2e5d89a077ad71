package brokers_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	sqlv3 "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/brokers"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestSQLv4Postgres(t *testing.T) {
	t.Parallel()
	schema := sqlv4.DefaultPostgreSQLSchema{SubscribeBatchSize: postgresBatch}
	runSuite(t, sqlBroker(sqlPubSub{
		name: "sql v4 postgres", dialect: inboxsql.Postgres, transactions: true,
		native:     brokers.SQLTransactionRecord(),
		publisher:  publisherV4(schema),
		subscriber: subscriberV4(schema, sqlv4.DefaultPostgreSQLOffsetsAdapter{}),
	}))
}

func TestSQLv4PostgresQueue(t *testing.T) {
	t.Parallel()
	schema := sqlv4.PostgreSQLQueueSchema{SubscribeBatchSize: 1} // more loses messages
	runSuite(t, sqlBroker(sqlPubSub{
		name: "sql v4 postgres queue", dialect: inboxsql.Postgres, queue: true,
		native:     brokers.SQLRecord(),
		publisher:  publisherV4(schema),
		subscriber: subscriberV4(schema, sqlv4.PostgreSQLQueueOffsetsAdapter{}),
	}))
}

func TestSQLv4MySQL(t *testing.T) {
	t.Parallel()
	schema := sqlv4.DefaultMySQLSchema{SubscribeBatchSize: 1} // more loses messages of producers that meet
	runSuite(t, sqlBroker(sqlPubSub{
		name: "sql v4 mysql", dialect: inboxsql.MySQL,
		native:     brokers.SQLRecord(),
		publisher:  publisherV4(schema),
		subscriber: subscriberV4(schema, sqlv4.DefaultMySQLOffsetsAdapter{}),
	}))
}

func TestSQLv4MySQLQueue(t *testing.T) {
	t.Parallel()
	schema := sqlv4.MySQLQueueSchema{SubscribeBatchSize: 1} // more loses messages
	runSuite(t, sqlBroker(sqlPubSub{
		name: "sql v4 mysql queue", dialect: inboxsql.MySQL, queue: true,
		native:     brokers.SQLRecord(),
		publisher:  publisherV4(schema),
		subscriber: subscriberV4(schema, sqlv4.MySQLQueueOffsetsAdapter{DeleteOnAck: true}),
	}))
}

// The tests of v3 have payloads that need not be JSON, those of v4 the default.

func TestSQLv3Postgres(t *testing.T) {
	t.Parallel()
	schema := sqlv3.DefaultPostgreSQLSchema{SubscribeBatchSize: postgresBatch, GeneratePayloadType: func(string) string { return "BYTEA" }}
	runSuite(t, sqlBroker(sqlPubSub{
		name: "sql v3 postgres", dialect: inboxsql.Postgres, transactions: true, bytes: true,
		native:     brokers.SQLTransactionRecord(),
		publisher:  publisherV3(schema),
		subscriber: subscriberV3(schema, sqlv3.DefaultPostgreSQLOffsetsAdapter{}),
	}))
}

func TestSQLv3MySQL(t *testing.T) {
	t.Parallel()
	schema := sqlv3.DefaultMySQLSchema{
		SubscribeBatchSize:  1, // more loses messages of producers that meet
		GeneratePayloadType: func(string) string { return "LONGBLOB" },
	}
	runSuite(t, sqlBroker(sqlPubSub{
		name: "sql v3 mysql", dialect: inboxsql.MySQL, bytes: true,
		native:     brokers.SQLRecord(),
		publisher:  publisherV3(schema),
		subscriber: subscriberV3(schema, sqlv3.DefaultMySQLOffsetsAdapter{}),
	}))
}

// postgresBatch is small: while a batch is processed, no one sees a later message
// of any topic.
const postgresBatch = 20

// sqlPoll is short, so that no test waits for a message that is there.
const sqlPoll = 10 * time.Millisecond

// sqlPubSub is a version of watermill-sql with one of its schemas, on a server.
type sqlPubSub struct {
	name         string
	dialect      inboxsql.Dialect
	queue        bool // there are no groups, and no table of offsets
	transactions bool // rows have the transaction that inserted them
	bytes        bool // payloads need not be JSON
	native       inboxmw.Part

	publisher  func(db *sql.DB) (message.Publisher, error)
	subscriber func(db *sql.DB, group string, ackDeadline time.Duration) (sqlSubscriber, error)
}

// sqlSubscriber is a subscriber that can make its tables.
type sqlSubscriber interface {
	message.Subscriber
	SubscribeInitialize(topic string) error
}

func publisherV3(schema sqlv3.SchemaAdapter) func(*sql.DB) (message.Publisher, error) {
	return func(db *sql.DB) (message.Publisher, error) {
		return sqlv3.NewPublisher(db, sqlv3.PublisherConfig{SchemaAdapter: schema}, nil)
	}
}

func publisherV4(schema sqlv4.SchemaAdapter) func(*sql.DB) (message.Publisher, error) {
	return func(db *sql.DB) (message.Publisher, error) {
		return sqlv4.NewPublisher(sqlv4.BeginnerFromStdSQL(db), sqlv4.PublisherConfig{SchemaAdapter: schema}, nil)
	}
}

func subscriberV3(schema sqlv3.SchemaAdapter, offsets sqlv3.OffsetsAdapter) func(*sql.DB, string, time.Duration) (sqlSubscriber, error) {
	return func(db *sql.DB, group string, ackDeadline time.Duration) (sqlSubscriber, error) {
		return sqlv3.NewSubscriber(db, sqlv3.SubscriberConfig{
			ConsumerGroup: group, SchemaAdapter: brokers.SQLv3Schema{SchemaAdapter: schema}, OffsetsAdapter: offsets,
			AckDeadline: &ackDeadline, PollInterval: sqlPoll, ResendInterval: sqlPoll, RetryInterval: sqlPoll,
		}, nil)
	}
}

func subscriberV4(schema sqlv4.SchemaAdapter, offsets sqlv4.OffsetsAdapter) func(*sql.DB, string, time.Duration) (sqlSubscriber, error) {
	return func(db *sql.DB, group string, ackDeadline time.Duration) (sqlSubscriber, error) {
		return sqlv4.NewSubscriber(sqlv4.BeginnerFromStdSQL(db), sqlv4.SubscriberConfig{
			ConsumerGroup: group, SchemaAdapter: brokers.SQLv4Schema{SchemaAdapter: schema}, OffsetsAdapter: offsets,
			AckDeadline: &ackDeadline, PollInterval: sqlPoll, ResendInterval: sqlPoll, RetryInterval: sqlPoll,
		}, nil)
	}
}

func sqlBroker(ps sqlPubSub) Broker {
	const notJSON = "payloads are stored as JSON"
	b := Broker{
		Name: ps.name, Reach: servers.Postgres.Need, Open: ps.open, OddTopic: "-$:._A",
		Lacks: map[string]string{},
		Refuses: map[string]string{
			oddLong: "the column uuid has 36 characters",
		},
		Alters: map[string]string{
			oddMetadata: "metadata are stored as JSON",
		},
	}
	if ps.dialect == inboxsql.MySQL {
		b.Reach = servers.MariaDB.Need
	} else {
		b.Refuses[oddNUL] = "PostgreSQL has no NUL in text"
	}
	b.Refuses[oddBytes] = "text is UTF-8"
	if !ps.bytes {
		b.Refuses[oddPayload] = notJSON
		b.Refuses[oddEmpty] = notJSON
		b.Refuses[oddLarge] = notJSON
	}
	if ps.queue {
		b.Lacks[caseHandlers] = "a queue has no groups"
		b.Lacks[caseServices] = "a queue has no groups"
	}
	if ps.queue || ps.dialect == inboxsql.MySQL {
		b.Lacks[caseRefusedAck] = "with a batch of one, a message that cannot be acked holds up all behind it"
	}
	return b
}

// open makes the tables of the topics. The inbox is in the same database.
func (ps sqlPubSub) open(t *testing.T, s Setting) *Env {
	t.Helper()
	newDatabase := newPostgres
	if ps.dialect == inboxsql.MySQL {
		newDatabase = newMySQL
	}
	d, cut := newDatabase(t)
	db := d.open()
	db.SetMaxOpenConns(8) // each subscription holds one while it has a batch
	db.SetMaxIdleConns(8)

	env := &Env{
		Publisher: func() message.Publisher {
			p, err := ps.publisher(db)
			if err != nil {
				t.Fatal(err)
			}
			return &guardedPublisher{publisher: p}
		},
		Subscriber: func(_, group string) message.Subscriber { return ps.newSubscriber(t, db, group, s.HandOver) },
		Database:   func() *database { return d },
		Foreign:    func(topic, payload string) { ps.insert(t, d, topic, payload) },
		Native:     ps.native,
		Interrupt:  cut,
	}
	maker := ps.newSubscriber(t, db, "", s.HandOver)
	for _, topic := range s.Topics {
		t.Cleanup(func() {
			d.exec(t, "DROP TABLE IF EXISTS "+d.quoted("watermill_"+topic.Name))
			d.exec(t, "DROP TABLE IF EXISTS "+d.quoted("watermill_offsets_"+topic.Name))
		})
		if err := maker.SubscribeInitialize(topic.Name); err != nil {
			t.Fatal(err)
		}
	}
	if ps.dialect == inboxsql.Postgres && !ps.queue {
		env.RefuseAcks = func(refuse bool) {
			for _, topic := range s.Topics {
				change := "ADD CONSTRAINT %s CHECK (offset_acked = 0)"
				if !refuse {
					change = "DROP CONSTRAINT %s"
				}
				d.exec(t, "ALTER TABLE "+d.quoted("watermill_offsets_"+topic.Name)+" "+fmt.Sprintf(change, d.quoted("refuse_"+topic.Name)))
			}
		}
	}
	return env
}

func (ps sqlPubSub) newSubscriber(t *testing.T, db *sql.DB, group string, ackDeadline time.Duration) sqlSubscriber {
	t.Helper()
	if ps.queue {
		group = ""
	}
	s, err := ps.subscriber(db, group, ackDeadline)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// guardedPublisher keeps Close apart from Publish: that of watermill-sql, which
// routers call at the same time, has a data race on a flag.
type guardedPublisher struct {
	mu        sync.RWMutex
	publisher message.Publisher
}

func (p *guardedPublisher) Publish(topic string, messages ...*message.Message) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.publisher.Publish(topic, messages...)
}

func (p *guardedPublisher) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.publisher.Close()
}

// insert writes a row as a program does that has the table and not Watermill. The
// column of the UUID must have something.
func (ps sqlPubSub) insert(t *testing.T, d *database, topic, payload string) {
	t.Helper()
	columns, values := "uuid, payload", "'', ?"
	if ps.dialect == inboxsql.Postgres {
		values = "'', $1"
	}
	if ps.transactions {
		columns, values = columns+", transaction_id", values+", pg_current_xact_id()"
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	insert := "INSERT INTO " + d.quoted("watermill_"+topic) + " (" + columns + ") VALUES (" + values + ")" //nolint:gosec // our own names
	if _, err := d.watch.ExecContext(ctx, insert, []byte(payload)); err != nil {
		t.Fatal(err)
	}
}
