// Command outbox sends orders through two services with an outbox and a relay
// between them, has each of the three kill itself at the worst moments, and counts
// what came of the orders: see README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"
)

const (
	orders = 300
	limit  = 3 * time.Minute // far above what any machine needs

	dsnEnv = "INBOX_TEST_POSTGRES_DSN"
	usual  = "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"
)

func main() {
	dsn := flag.String("dsn", cmp.Or(os.Getenv(dsnEnv), usual), "a PostgreSQL database, in which a schema is made and dropped again; also by "+dsnEnv)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
	defer cancel()

	if flag.NArg() > 0 {
		if err := serve(ctx, *dsn, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "FAILED:", err)
			os.Exit(failed)
		}
		return
	}
	report, err := demonstrate(ctx, *dsn)
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
	fmt.Println("ok:", report)
}

// demonstrate runs the services until nothing is on its way any more, and reports
// what they left. It fails if an effect is doubled or lost.
func demonstrate(ctx context.Context, dsn string) (report string, err error) {
	db, schema, err := makeSchema(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, dropSchema(ctx, db, schema)) }()
	if err = sendOrders(db); err != nil {
		return "", err
	}
	fmt.Printf("%d orders: shop (inbox, outbox), relay, billing (inbox); each process kills itself %d times\n", orders, len(crashes()))

	running, stop := context.WithCancelCause(ctx)
	var ended sync.WaitGroup
	var killed atomic.Int64
	for name := range services {
		ended.Go(func() {
			if failure := keepAlive(running, dsn, schema, name, &killed); failure != nil {
				stop(failure)
			}
		})
	}
	err = waitUntilSettled(running, db)
	stop(nil)
	ended.Wait()
	if err != nil {
		return "", err
	}
	c, err := count(ctx, db)
	if err != nil {
		return "", err
	}
	c.killed = int(killed.Load())
	return c.String(), c.check()
}
