package outbox_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestStallOnPostgreSQL(t *testing.T) {
	t.Parallel()
	standard := flavourV4("", postgresServer, "pgx", sqlv4.DefaultPostgreSQLSchema{}, sqlv4.DefaultPostgreSQLOffsetsAdapter{})
	queue := queues(1)[0]

	t.Run("behind a handler in flight the default schema delivers nothing, the queue schema does", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, postgresServer.open(t, "pgx", ""))
		stalled, flowing := "stalled"+r.suffix, "flowing"+r.suffix
		standard.makeTopics(t, r.database, stalled)
		queue.makeTopics(t, r.database, flowing)
		fromStalled := subscribe(t, standard.source(t, r.database), stalled)
		fromFlowing := subscribe(t, queue.source(t, r.database), flowing)

		end := r.handlerInFlight(t)
		standard.publish(t, r.database, stalled, message.NewMessage("m1", payload("x")))
		queue.publish(t, r.database, flowing, message.NewMessage("m2", payload("x")))

		wantMessage(t, fromFlowing, "m2", string(payload("x")))
		if n := len(r.count(t, `SELECT uuid FROM "watermill_`+stalled+`" WHERE transaction_id < pg_snapshot_xmin(pg_current_snapshot())`)); n != 0 {
			t.Error("the default schema sees the message: the guide can be shorter")
		}
		select {
		case <-fromStalled:
			t.Error("the default schema delivers: the guide can be shorter")
		default:
		}
		end()
		wantMessage(t, fromStalled, "m1", string(payload("x")))
	})
}

// handlerInFlight holds the transaction of a protected handler open until end is
// called.
func (r *rig) handlerInFlight(t *testing.T) (end func()) {
	t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
	inside, finish := make(chan struct{}), make(chan struct{})
	router.AddPlugin(inboxmw.MustNew(r.store, nil).Plugin)
	router.AddConsumerHandler("slow", "slow", channel,
		inboxmw.TxConsumerHandler(func(context.Context, *sql.Tx, *message.Message) error {
			close(inside)
			<-finish
			return nil
		}))
	stop := run(t, router)
	if err := channel.Publish("slow", message.NewMessage("slow", nil)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-inside:
	case <-time.After(patience):
		t.Fatal("the handler did not start")
	}
	return func() {
		close(finish)
		stop()
	}
}

func TestStallOnMariaDB(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		batch  int
		stalls bool
	}{
		{"behind an open batch of the default schema no handler can write to the outbox", 0, true},
		{"behind a batch of one it can", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := flavourV4("", mariadbServer, "mysql", sqlv4.DefaultMySQLSchema{SubscribeBatchSize: c.batch}, sqlv4.DefaultMySQLOffsetsAdapter{})
			r := newRig(t, mariadbServer.open(t, "mysql", "innodb_lock_wait_timeout=1"))
			topic := "outbox" + r.suffix
			f.makeTopics(t, r.database, topic)
			f.publish(t, r.database, topic, message.NewMessage("m1", payload("x")))
			open := receive(t, subscribe(t, f.source(t, r.database), topic))
			if c.stalls {
				r.fails(t, f.policy(), topic, message.NewMessage("m2", payload("x")), "publish to the outbox", "1205")
			} else {
				r.works(t, f.policy(), topic, message.NewMessage("m2", payload("x")))
			}
			open.Ack()
		})
	}
	for _, f := range queues(1)[1:] {
		t.Run("behind a queue schema with a batch of one it can", func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mariadbServer.open(t, "mysql", "innodb_lock_wait_timeout=1"))
			topic := "outbox" + r.suffix
			f.makeTopics(t, r.database, topic)
			f.publish(t, r.database, topic, message.NewMessage("m1", payload("x")))
			open := receive(t, subscribe(t, f.source(t, r.database), topic))
			r.works(t, f.policy(), topic, message.NewMessage("m2", payload("x")))
			open.Ack()
		})
	}
}
