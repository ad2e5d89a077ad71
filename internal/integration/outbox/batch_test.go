package outbox_test

import (
	"fmt"
	"testing"
	"time"

	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
)

// queues are the queue schemas of v4, with a batch of that size.
func queues(batch int) []flavour {
	return []flavour{
		flavourV4("PostgreSQL", postgresServer, "pgx",
			sqlv4.PostgreSQLQueueSchema{SubscribeBatchSize: batch}, sqlv4.PostgreSQLQueueOffsetsAdapter{}),
		flavourV4("MariaDB", mariadbServer, "mysql",
			sqlv4.MySQLQueueSchema{SubscribeBatchSize: batch}, sqlv4.MySQLQueueOffsetsAdapter{}),
	}
}

func TestQueueSchemaBatch(t *testing.T) {
	t.Parallel()
	for _, f := range queues(5) {
		t.Run("a batch of five that is interrupted after one is acked as a whole, and four are lost: "+f.name, func(t *testing.T) {
			t.Parallel()
			if got := interrupted(t, f); got != 0 {
				t.Errorf("%d of 4 are left: the guide can be milder", got)
			}
		})
	}
	for _, f := range queues(1) {
		t.Run("a batch of one loses nothing: "+f.name, func(t *testing.T) {
			t.Parallel()
			if got := interrupted(t, f); got != 4 {
				t.Errorf("%d of 4 are left", got)
			}
		})
	}
}

func TestQueueSchemaAckDeadline(t *testing.T) {
	t.Parallel()
	for _, f := range queues(5) {
		t.Run("a batch in which a message comes to its ack deadline is acked as a whole: "+f.name, func(t *testing.T) {
			t.Parallel()
			d := f.server.open(t, f.driver, "")
			topic := "outbox" + d.suffix
			f.makeTopics(t, d, topic)
			for i := range 5 {
				f.publish(t, d, topic, message.NewMessage(fmt.Sprint("m", i), payload("x")))
			}
			deadline := 500 * time.Millisecond
			source, err := f.subscriber(d.DB, &deadline)
			if err != nil {
				t.Fatal(err)
			}
			messages := subscribe(t, source, topic)
			receive(t, messages).Ack()
			<-receive(t, messages).Context().Done()
			f.publish(t, d, topic, message.NewMessage("next", payload("x")))
			wantMessage(t, messages, "next", string(payload("x")))
		})
	}
}

// interrupted acks one of five messages, closes the subscriber while the second
// is being worked on, and returns how many are not acked.
func interrupted(t *testing.T, f flavour) int {
	t.Helper()
	d := f.server.open(t, f.driver, "")
	topic := "outbox" + d.suffix
	f.makeTopics(t, d, topic)
	for i := range 5 {
		f.publish(t, d, topic, message.NewMessage(fmt.Sprint("m", i), payload("x")))
	}
	source := f.source(t, d)
	messages := subscribe(t, source, topic)
	receive(t, messages).Ack()
	receive(t, messages)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	return len(d.count(t, "SELECT uuid FROM "+d.quoted("watermill_"+topic)+" WHERE acked = FALSE"))
}
