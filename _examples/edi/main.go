// Command edi keeps the history of orders by the acknowledgements that trading
// partners send over AS2, each of them more than once: see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

const topic = "acknowledgements"

func main() {
	seed := flag.Uint64("seed", 4130, "of the order in which the documents arrive")
	flag.Parse()
	report, err := run(context.Background(), *seed)
	fmt.Print(report)
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

// run receives each document twice, in the order that seed gives, and reports the
// history that comes of it. It fails if a transition is doubled or lost.
func run(ctx context.Context, seed uint64) (report string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	dir, err := os.MkdirTemp("", "inbox-edi-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	db, err := sqlx.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "edi.db"))+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return "", err
	}
	defer db.Close() //nolint:errcheck // all that counts is committed
	db.SetMaxOpenConns(4)

	received, err := documents()
	if err != nil {
		return "", err
	}
	arrivals := twice(received, seed)
	report = fmt.Sprintf("seed %d: %d documents from two partners, each delivered twice and out of order\n\n", seed, len(received))
	if err = process(ctx, db, arrivals); err != nil {
		return report, err
	}
	history, err := readHistory(ctx, db)
	report += history
	if err != nil {
		return report, err
	}
	counted, err := count(ctx, db)
	if err != nil {
		return report, err
	}
	if err = counted.check(len(received), len(arrivals)); err != nil {
		return report, err
	}
	return report + fmt.Sprintf("\nok: %s\n", counted), nil
}

// process hands the documents to the AS2 receiver, and returns when the router
// has settled every one of them.
func process(ctx context.Context, db *sqlx.DB, arrivals []document) error {
	logger := watermill.NewSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	pubSub := gochannel.NewGoChannel(gochannel.Config{}, logger)
	defer pubSub.Close() //nolint:errcheck // it is empty

	store, err := inboxsql.New(db, nil)
	if err != nil {
		return err
	}
	if err = errors.Join(store.CreateTable(ctx), createTables(ctx, db)); err != nil {
		return err
	}
	settled := newSettled(len(arrivals))
	cfg := &inboxmw.Config{
		Handler: inboxmw.Handler{
			Source: inboxmw.Metadata(partnerField),
			Key:    inboxmw.FirstOf(mdn.key(), contrl.key(), x12997.key()),
		},
		Observers: []inbox.Observer{settled},
	}

	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return err
	}
	defer router.Close() //nolint:errcheck // for the paths with another error; twice is fine
	router.AddPlugin(inboxmw.MustNew(store, cfg).Plugin)
	router.AddConsumerHandler("order-history", topic, pubSub, inboxmw.TxConsumerHandler(recordTransition))

	stopped := make(chan error, 1)
	go func() { stopped <- router.Run(ctx) }()
	select {
	case <-router.Running():
	case err := <-stopped:
		return fmt.Errorf("the router did not start: %w", err)
	}
	for _, d := range arrivals {
		if err := receive(ctx, db, pubSub, d); err != nil {
			return err
		}
	}
	select {
	case <-settled.all:
		return router.Close()
	case <-ctx.Done():
		return fmt.Errorf("%d deliveries are not settled: %w", settled.left.Load(), ctx.Err())
	}
}
