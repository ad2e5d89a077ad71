package retention_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	_ "modernc.org/sqlite"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
	"github.com/watermill-inbox/inbox/retention"
)

func newStore(cfg *inboxsql.Config) (*sql.DB, *inboxsql.Store) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	store := inboxsql.MustNew(db, cfg)
	if err := store.CreateTable(context.Background()); err != nil {
		panic(err)
	}
	return db, store
}

// Keys go a week after their message was received first.
func ExampleCleaner_Plugin() {
	_, store := newStore(nil)
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		panic(err)
	}
	router.AddPlugin(
		inboxmw.MustNew(store, nil).Plugin,
		retention.MustNew(store, nil).Plugin,
	)
	fmt.Println(store.Window("invoices"))
	// Output: 168h0m0s
}

// A command that a scheduler starts sweeps once.
func ExampleCleaner_Sweep() {
	db, store := newStore(&inboxsql.Config{Window: 14 * 24 * time.Hour})
	ctx := context.Background()
	for _, id := range []string{"ord-1001", "ord-1002"} {
		d := inbox.Delivery{Key: inbox.Key{Consumer: "invoices", MessageID: id}}
		if _, _, err := store.Once(ctx, d, func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil }); err != nil {
			panic(err)
		}
	}
	if _, err := db.ExecContext(ctx, "UPDATE inbox_messages SET received_at = datetime('now', '-15 days') WHERE message_id = 'ord-1001'"); err != nil {
		panic(err)
	}
	report, err := retention.MustNew(store, nil).Sweep(ctx)
	fmt.Println(report.Removed, report.Done, err)
	// Output: 1 true <nil>
}

// A service that has no router runs it beside its other work.
func ExampleCleaner_Run() {
	_, store := newStore(nil)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	retention.MustNew(store, &retention.Config{
		Interval: 5 * time.Minute,
		OnSweep:  func(r retention.Report, err error) { fmt.Println(r.Removed, err) },
	}).Run(ctx)
	fmt.Println("ended with its context")
	// Output: ended with its context
}
