package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// workerEnv has what a worker is to do. Where it is not set, the program is a test.
const workerEnv = "INBOX_CRASH_WORKER"

// outputs is how many messages each message has its handler produce.
const outputs = 2

// Ways to consume. Two of them are controls, and must be found wanting.
const (
	withInbox  = "inbox"
	withOutbox = "outbox"      // the inbox, with the outputs in a table of the transaction
	naive      = "naive inbox" // keeps the id, and nothing of the outputs
	without    = "no inbox"
)

// parentMeta is the metadata field of an output that names its message.
const parentMeta = "of"

// task is one life of a worker.
type task struct {
	Database database
	Broker   broker
	Way      string
	At       step
	Nth      int64
}

// work consumes until the worker dies, or its parent.
func work(definition string) error {
	var t task
	if err := json.Unmarshal([]byte(definition), &t); err != nil {
		return err
	}
	l := &life{at: t.At, nth: t.Nth, parent: os.NewFile(3, "parent")}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the parent
		os.Exit(4)
	}()
	db, err := t.Database.open(l)
	if err != nil {
		return err
	}
	publisher, err := t.Broker.publisher()
	if err != nil {
		return err
	}
	subscriber, err := t.Broker.subscriber(t.Broker.In)
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	router.AddMiddleware(outside(l), t.middleware(l, sqlx.NewDb(db, string(t.Database.Dialect))), inside(l))
	router.AddHandler("worker", t.Broker.In, subscriber, t.Broker.Out, mortal{publisher, l}, t.handle(l))
	return errors.Join(router.Run(context.Background()), errors.New("the router ended"))
}

func (t task) handle(l *life) message.HandlerFunc {
	return inboxmw.TxHandler(func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
		l.pass(beforeWrites)
		insert := "INSERT INTO " + t.Database.Effects + " (id) VALUES (?)"
		if t.Database.Dialect == inboxsql.Postgres {
			insert = "INSERT INTO " + t.Database.Effects + " (id) VALUES ($1)"
		}
		if _, err := tx.ExecContext(ctx, insert, msg.UUID); err != nil {
			return nil, err
		}
		l.pass(afterWrites)
		produced := make([]*message.Message, outputs)
		for i := range produced {
			produced[i] = message.NewMessage(watermill.NewUUID(), message.Payload(fmt.Sprintf(`"%s/%d"`, msg.UUID, i)))
			produced[i].Metadata.Set(parentMeta, msg.UUID)
		}
		return produced, nil
	})
}

func (t task) middleware(l *life, db *sqlx.DB) message.HandlerMiddleware {
	if t.Way == withInbox || t.Way == withOutbox {
		var config inboxmw.Config
		if t.Way == withOutbox {
			config.Handler.Produced = inboxmw.Outbox(func(tx *sqlx.Tx) (message.Publisher, error) {
				return mortal{outbox{tx, t.Database}, l}, nil
			})
		}
		store := inboxsql.MustNew(db, &inboxsql.Config{Dialect: t.Database.Dialect, Table: t.Database.Inbox})
		return inboxmw.MustNew(store, &config).Middleware
	}
	claim := map[inboxsql.Dialect]string{
		inboxsql.Postgres: "INSERT INTO naive" + t.Database.Inbox + " (id) VALUES ($1) ON CONFLICT DO NOTHING",
		inboxsql.MySQL:    "INSERT IGNORE INTO naive" + t.Database.Inbox + " (id) VALUES (?)",
		inboxsql.SQLite:   "INSERT INTO naive" + t.Database.Inbox + " (id) VALUES (?) ON CONFLICT DO NOTHING",
	}[t.Database.Dialect]
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			ctx := context.WithoutCancel(msg.Context())
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return nil, err
			}
			defer tx.Rollback()
			if t.Way == naive {
				inserted, claimErr := tx.ExecContext(ctx, claim, msg.UUID)
				if claimErr != nil {
					return nil, claimErr
				}
				if n, countErr := inserted.RowsAffected(); countErr != nil || n == 0 {
					return nil, countErr
				}
			}
			msg.SetContext(inbox.ContextWithTx(ctx, tx))
			produced, err := next(msg)
			if err != nil {
				return nil, err
			}
			return produced, tx.Commit()
		}
	}
}

// outside tells the parent of each delivery and ack.
func outside(l *life) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			l.tell("delivered", msg.UUID)
			go func() {
				select {
				case <-msg.Acked():
					l.tell("acked", msg.UUID)
					l.pass(afterAck)
				case <-msg.Nacked():
				}
			}()
			produced, err := next(msg)
			if err == nil {
				l.pass(afterCommit)
			}
			return produced, err
		}
	}
}

func inside(l *life) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			produced, err := next(msg)
			if err == nil {
				l.pass(afterHandler)
			}
			return produced, err
		}
	}
}

// mortal publishes one message after the other.
type mortal struct {
	message.Publisher
	life *life
}

func (m mortal) Publish(topic string, messages ...*message.Message) error {
	for i, msg := range messages {
		if i > 0 {
			m.life.pass(midPublish)
		}
		if err := m.Publisher.Publish(topic, msg); err != nil {
			return err
		}
	}
	m.life.pass(beforeAck)
	return nil
}

// outbox publishes into a table, in a transaction.
type outbox struct {
	tx *sqlx.Tx
	d  database
}

// Publish implements [message.Publisher].
func (o outbox) Publish(_ string, messages ...*message.Message) error {
	insert := "INSERT INTO out" + o.d.Inbox + " (id, parent) VALUES (?, ?)"
	if o.d.Dialect == inboxsql.Postgres {
		insert = "INSERT INTO out" + o.d.Inbox + " (id, parent) VALUES ($1, $2)"
	}
	for _, msg := range messages {
		if _, err := o.tx.ExecContext(msg.Context(), insert, msg.UUID+" "+string(msg.Payload), msg.Metadata.Get(parentMeta)); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [message.Publisher].
func (outbox) Close() error { return nil }
