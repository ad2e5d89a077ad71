package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	_ "github.com/jackc/pgx/v5/stdlib"
)

// openSQL uses tables of a PostgreSQL. The inbox is elsewhere, as for all brokers.
func openSQL(ctx context.Context, s setting) (*broker, error) {
	db, err := sql.Open("pgx", s.server)
	if err != nil {
		return nil, err
	}
	reach, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := db.PingContext(reach); err != nil {
		return nil, errors.Join(fmt.Errorf("PostgreSQL cannot be reached: start it with docker compose up --detach --wait postgres, or say with -server or %s where yours is: %w", dsnEnv, err), db.Close())
	}
	return &broker{
		publisher: func() (message.Publisher, error) {
			return sqlv4.NewPublisher(sqlv4.BeginnerFromStdSQL(db), sqlv4.PublisherConfig{SchemaAdapter: sqlv4.PostgreSQLQueueSchema{}}, s.logger)
		},
		subscriber: func(string) (message.Subscriber, error) {
			return sqlv4.NewSubscriber(sqlv4.BeginnerFromStdSQL(db), sqlv4.SubscriberConfig{
				SchemaAdapter:    sqlv4.PostgreSQLQueueSchema{SubscribeBatchSize: 1}, // more loses messages
				OffsetsAdapter:   sqlv4.PostgreSQLQueueOffsetsAdapter{},
				InitializeSchema: true,
				PollInterval:     10 * time.Millisecond,
				ResendInterval:   10 * time.Millisecond,
				RetryInterval:    10 * time.Millisecond, // a member may lose the race for a row
			}, s.logger)
		},
		close: func() error { return errors.Join(dropTables(ctx, db, s.orders, s.invoices), db.Close()) },
	}, nil
}

// dropTables drops those of the topics, also when ctx has ended.
func dropTables(ctx context.Context, db *sql.DB, topics ...string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, topic := range topics {
		table := sqlv4.PostgreSQLQueueSchema{}.MessagesTable(topic)
		if _, err := db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return err
		}
	}
	return nil
}
