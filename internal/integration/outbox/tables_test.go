package outbox_test

import (
	"database/sql"
	"testing"

	sqlv3 "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestTablesAreMadeBeforehand(t *testing.T) {
	t.Parallel()
	json := func() *message.Message { return message.NewMessage("m1", payload("m1")) }

	t.Run("AutoInitializeSchema in the transaction is refused", func(t *testing.T) {
		t.Parallel()
		for name, open := range map[string]func(tx *sql.Tx) (message.Publisher, error){
			"v3": func(tx *sql.Tx) (message.Publisher, error) {
				return sqlv3.NewPublisher(tx, sqlv3.PublisherConfig{SchemaAdapter: sqlv3.DefaultPostgreSQLSchema{}, AutoInitializeSchema: true}, nil)
			},
			"v4": func(tx *sql.Tx) (message.Publisher, error) {
				return sqlv4.NewPublisher(sqlv4.TxFromStdSQL(tx), sqlv4.PublisherConfig{SchemaAdapter: sqlv4.PostgreSQLQueueSchema{}, AutoInitializeSchema: true}, nil)
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, postgresServer.open(t, "pgx", ""))
				r.fails(t, inboxmw.Outbox(open), "outbox"+r.suffix, json(), "open the outbox", "AutoInitializeSchema")
			})
		}
	})

	for _, f := range flavours() {
		t.Run("a missing table fails the delivery, and once it is made the message is processed: "+f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, f.server.open(t, f.driver, ""))
			topic := "outbox" + r.suffix
			r.fails(t, f.policy(), topic, json(), "publish to the outbox", "watermill_"+topic)
			f.makeTopics(t, r.database, topic)
			r.works(t, f.policy(), topic, json())
			wantMessage(t, subscribe(t, f.source(t, r.database), topic), "m1", string(payload("m1")))
		})
	}

	t.Run("makeTables makes them for the outbox of v4", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, postgresServer.open(t, "pgx", ""))
		topic := "outbox" + r.suffix
		r.drop(t, "watermill_"+topic)
		for range 2 {
			if err := makeTables(r.DB, topic); err != nil {
				t.Fatal(err)
			}
		}
		r.works(t, outboxV4(), topic, json())
		source, err := relaySource(r.DB)
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, subscribe(t, source, topic), "m1", string(payload("m1")))
	})

	t.Run("the tables of v3 take what the outbox of v3 writes", func(t *testing.T) {
		t.Parallel()
		f := flavourV3("", postgresServer, "pgx", sqlv3.DefaultPostgreSQLSchema{}, sqlv3.DefaultPostgreSQLOffsetsAdapter{})
		r := newRig(t, postgresServer.open(t, "pgx", ""))
		topic := "outbox" + r.suffix
		f.makeTopics(t, r.database, topic)
		r.works(t, outboxV3(), topic, json())
		wantMessage(t, subscribe(t, f.source(t, r.database), topic), "m1", string(payload("m1")))
	})
}
