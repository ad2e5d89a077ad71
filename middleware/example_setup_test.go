package inboxmw_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/watermill-inbox/inbox/inboxsql"
)

// example is what the shorter examples stand on: a database with an inbox, a
// broker, and a router.
type example struct {
	db     *sql.DB
	store  *inboxsql.Store
	broker *gochannel.GoChannel
	router *message.Router
}

func newExample() *example {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	for _, ddl := range []string{
		"CREATE TABLE invoices (order_id TEXT, lines TEXT)",
		"CREATE TABLE outbox (topic TEXT, uuid TEXT, payload BLOB)",
	} {
		if _, err = db.ExecContext(context.Background(), ddl); err != nil {
			panic(err)
		}
	}
	store := inboxsql.MustNew(db, nil)
	if err = store.CreateTable(context.Background()); err != nil {
		panic(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		panic(err)
	}
	broker := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil)
	return &example{db: db, store: store, broker: broker, router: router}
}

// deliver runs the router for these orders, one after the other, each until it is
// acked.
func (e *example) deliver(orders ...*message.Message) {
	stopped := make(chan error, 1)
	go func() { stopped <- e.router.Run(context.Background()) }()
	select {
	case <-e.router.Running():
	case err := <-stopped:
		panic(err)
	}
	for _, order := range orders {
		if err := e.broker.Publish("orders", order); err != nil {
			panic(err)
		}
	}
	if err := e.router.Close(); err != nil {
		panic(err)
	}
	if err := <-stopped; err != nil {
		panic(err)
	}
}

// show prints how many rows a table has, and closes the database.
func (e *example) show(tables ...string) {
	for _, table := range tables {
		var n int
		if err := e.db.QueryRowContext(context.Background(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %d\n", table, n)
	}
	if err := e.db.Close(); err != nil {
		panic(err)
	}
}

// order is a new message for each call, as each delivery has.
func order(uuid string) *message.Message { return message.NewMessage(uuid, []byte("3 books")) }

// printer is a publisher that prints.
type printer struct{}

func (printer) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		fmt.Printf("published to %s: %s\n", topic, m.UUID)
	}
	return nil
}

func (printer) Close() error { return nil }

// nowhere is a publisher whose messages no one looks at.
type nowhere struct{}

func (nowhere) Publish(string, ...*message.Message) error { return nil }

func (nowhere) Close() error { return nil }
