// Command cqrs sends commands and events through buses, to handlers that fail at
// times, over a broker that delivers twice: see README.md.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	_ "modernc.org/sqlite"

	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

const orders = 200

func main() {
	time.AfterFunc(time.Minute, func() { fail(errors.New("messages are not settled after a minute")) })
	broker := newBroker()
	db, err := serve(context.Background(), broker)
	if err != nil {
		fail(err)
	}
	summary, err := count(context.Background(), db, broker)
	if err != nil {
		fail(err)
	}
	fmt.Println("ok:", summary)
}

func fail(err error) {
	fmt.Println("FAILED:", err)
	os.Exit(1)
}

// serve sends a command for each order, and returns when all that follows is settled.
func serve(ctx context.Context, broker *broker) (*sql.DB, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // another connection would have another database
	store := inboxsql.MustNew(db, nil)
	_, err = db.ExecContext(ctx, tables)
	if err = errors.Join(err, store.CreateTable(ctx)); err != nil {
		return nil, err
	}

	in := inboxmw.MustNew(store, nil)
	router := message.NewDefaultRouter(nil)
	router.AddMiddleware(broker.settle, middleware.Recoverer)
	router.AddPlugin(in.Plugin)
	// This is what buses need: what a handler publishes leaves after its commit.
	shop, err := newShop(in.Publisher("broker", broker))
	if err != nil {
		return nil, err
	}
	if err := shop.addTo(router, broker); err != nil {
		return nil, err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- router.Run(ctx) }()
	select {
	case <-router.Running():
	case err := <-stopped:
		return nil, fmt.Errorf("the router did not start: %w", err)
	}
	for i := range orders {
		// Outside a handler, the same bus publishes at once.
		if err := shop.commands.Send(ctx, &PlaceOrder{ID: fmt.Sprintf("order-%d", i+1)}); err != nil {
			return nil, err
		}
	}
	broker.unsettled.Wait()
	return db, router.Close()
}

// count fails unless each order has one row in each table, and one event. An event
// too many would be that of an attempt that was rolled back.
func count(ctx context.Context, db *sql.DB, broker *broker) (string, error) {
	var placed, ordered, invoices, invoiced int
	err := db.QueryRowContext(ctx, `SELECT * FROM
		(SELECT count(*), count(DISTINCT order_id) FROM orders),
		(SELECT count(*), count(DISTINCT order_id) FROM invoices)`).Scan(&placed, &ordered, &invoices, &invoiced)
	if err != nil {
		return "", err
	}
	events := len(broker.published["OrderPlaced"])
	doubled := placed - ordered + invoices - invoiced + max(events-orders, 0)
	lost := 2*orders - ordered - invoiced + max(orders-events, 0)
	summary := fmt.Sprintf("%d commands, %d deliveries of which %d failed, %d orders, %d events, %d invoices, %d doubled, %d lost",
		orders, broker.deliveries.Load(), broker.failures.Load(), placed, events, invoices, doubled, lost)
	if doubled > 0 || lost > 0 || broker.failures.Load() == 0 {
		return "", errors.New(summary)
	}
	return summary, nil
}
