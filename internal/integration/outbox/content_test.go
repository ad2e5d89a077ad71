package outbox_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	sqlv3 "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// forward relays what stands in the outbox table of a topic, and returns what
// arrives at the broker.
func forward(t *testing.T, from message.Subscriber, outboxTopic, topic string) <-chan *message.Message {
	t.Helper()
	broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
	arrived := subscribe(t, broker, topic)
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forwarder.NewForwarder(from, broker, watermill.NopLogger{}, forwarder.Config{ForwarderTopic: outboxTopic, Router: router}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run(t, router))
	return arrived
}

// outboxWithRelay is a rig with the tables of enveloped.
func outboxWithRelay(t *testing.T, topic string) (r *rig, policy inboxmw.ProducedPolicy, arrived <-chan *message.Message) {
	t.Helper()
	r = newRig(t, postgresServer.open(t, "pgx", ""))
	outboxTopic := "outbox" + r.suffix
	r.drop(t, "watermill_"+outboxTopic)
	if err := makeTables(r.DB, outboxTopic); err != nil {
		t.Fatal(err)
	}
	source, err := relaySource(r.DB)
	if err != nil {
		t.Fatal(err)
	}
	return r, enveloped(outboxTopic), forward(t, source, outboxTopic, topic)
}

func TestLongUUID(t *testing.T) {
	t.Parallel()
	uuid := strings.Repeat("u", 37)
	for _, f := range flavours() {
		t.Run("one of more than 36 characters fails the delivery: "+f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, f.server.open(t, f.driver, ""))
			topic := "outbox" + r.suffix
			f.makeTopics(t, r.database, topic)
			r.fails(t, f.policy(), topic, message.NewMessage(uuid, payload("x")), "publish to the outbox")
		})
	}
	t.Run("MariaDB without strict mode cuts it, so that two messages become one", func(t *testing.T) {
		t.Parallel()
		f := flavourV4("", mariadbServer, "mysql", sqlv4.MySQLQueueSchema{SubscribeBatchSize: 1}, sqlv4.MySQLQueueOffsetsAdapter{})
		r := newRig(t, mariadbServer.open(t, "mysql", "sql_mode=''"))
		topic := "outbox" + r.suffix
		f.makeTopics(t, r.database, topic)
		r.works(t, f.policy(), topic, message.NewMessage(uuid+"1", payload("x")), message.NewMessage(uuid+"2", payload("y")))
		if got := r.count(t, "SELECT uuid FROM "+r.quoted("watermill_"+topic)); got[uuid[:36]] != 2 {
			t.Errorf("the UUIDs are %v: the guide can be milder", got)
		}
	})
	t.Run("the envelope takes it", func(t *testing.T) {
		t.Parallel()
		r, policy, arrived := outboxWithRelay(t, "invoices")
		r.works(t, policy, "invoices", message.NewMessage(uuid, payload("x")))
		wantMessage(t, arrived, uuid, string(payload("x")))
	})
}

func TestPayloadThatIsNotJSON(t *testing.T) {
	t.Parallel()
	const binary = "\x00\xff{"
	for _, f := range flavours() {
		t.Run("it fails the delivery: "+f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, f.server.open(t, f.driver, ""))
			topic := "outbox" + r.suffix
			f.makeTopics(t, r.database, topic)
			r.fails(t, f.policy(), topic, message.NewMessage("m1", []byte(binary)), "publish to the outbox")
		})
	}
	t.Run("the envelope takes it", func(t *testing.T) {
		t.Parallel()
		r, policy, arrived := outboxWithRelay(t, "invoices")
		r.works(t, policy, "invoices", message.NewMessage("m1", []byte(binary)))
		wantMessage(t, arrived, "m1", binary)
	})
	bytea, blob := func(string) string { return "BYTEA" }, func(string) string { return "LONGBLOB" }
	for _, f := range []flavour{
		flavourV3("v3 on PostgreSQL", postgresServer, "pgx",
			sqlv3.DefaultPostgreSQLSchema{GeneratePayloadType: bytea}, sqlv3.DefaultPostgreSQLOffsetsAdapter{}),
		flavourV4("v4 on PostgreSQL, queue schema", postgresServer, "pgx",
			sqlv4.PostgreSQLQueueSchema{GeneratePayloadType: bytea, SubscribeBatchSize: 1}, sqlv4.PostgreSQLQueueOffsetsAdapter{}),
		flavourV4("v4 on PostgreSQL, default schema", postgresServer, "pgx",
			sqlv4.DefaultPostgreSQLSchema{GeneratePayloadType: bytea}, sqlv4.DefaultPostgreSQLOffsetsAdapter{}),
		flavourV4("v4 on MariaDB", mariadbServer, "mysql",
			sqlv4.MySQLQueueSchema{GeneratePayloadType: blob, SubscribeBatchSize: 1}, sqlv4.MySQLQueueOffsetsAdapter{}),
	} {
		t.Run("a binary payload column takes it: "+f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, f.server.open(t, f.driver, ""))
			topic := "outbox" + r.suffix
			f.makeTopics(t, r.database, topic)
			r.works(t, f.policy(), topic, message.NewMessage("m1", []byte(binary)))
			wantMessage(t, subscribe(t, f.source(t, r.database), topic), "m1", binary)
		})
	}
}

func TestNothingProduced(t *testing.T) {
	t.Parallel()
	for _, f := range flavours() {
		t.Run("the publisher is not even opened: "+f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, f.server.open(t, f.driver, ""))
			r.works(t, inboxmw.Outbox(func(*sql.Tx) (message.Publisher, error) {
				t.Error("it was opened")
				return none{}, nil
			}), "outbox"+r.suffix)
		})
		t.Run("watermill-sql by itself fails on no messages: "+f.name, func(t *testing.T) {
			t.Parallel()
			d := f.server.open(t, f.driver, "")
			topic := "outbox" + d.suffix
			f.makeTopics(t, d, topic)
			publisher, err := f.publisher(d.DB)
			if err != nil {
				t.Fatal(err)
			}
			if publisher.Publish(topic) == nil {
				t.Error("it does not: the guide can be shorter")
			}
		})
	}
}
