// Command retention measures what removing old keys costs the messages beside it,
// on PostgreSQL, and prints the table of docs/retention.md. It needs a server that has
// nothing else to do, and a role that may CHECKPOINT: -dsn says where it is.
//
// Figures are ratios of what was measured side by side in one run. A round measures
// each variant once, one after the other; the table has the median of the ratios of
// all rounds, with the least and the greatest.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

const dsnEnv = "INBOX_TEST_POSTGRES_DSN"

// bench is what all cases have.
type bench struct {
	db      *sql.DB
	workers int
	rounds  int
	cell    time.Duration // one measurement
	million int           // rows
}

func main() {
	b := &bench{}
	dsn := flag.String("dsn", cmp.Or(os.Getenv(dsnEnv), "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"), "the PostgreSQL server")
	flag.IntVar(&b.workers, "workers", 8, "deliveries at the same time")
	flag.IntVar(&b.rounds, "rounds", 7, "rounds of each comparison; half of them where a million rows are made for each")
	flag.DurationVar(&b.cell, "cell", 2*time.Second, "the time of one measurement")
	flag.IntVar(&b.million, "million", 1_000_000, "how many rows stand for a million")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx, *dsn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to do
	}
}

func (b *bench) run(ctx context.Context, dsn string) (err error) {
	if b.db, err = sql.Open("pgx", dsn); err != nil {
		return err
	}
	defer b.db.Close() //nolint:errcheck // nothing is left to do
	b.db.SetMaxOpenConns(b.workers + 4)
	b.db.SetMaxIdleConns(b.workers + 4)
	fmt.Printf("%d workers, %d rounds of %s, %d rows for a million\n\n", b.workers, b.rounds, b.cell, b.million)
	if err := b.size(ctx); err != nil {
		return err
	}
	fmt.Println("| what | to quiet |\n|---|---|")
	for _, measure := range []func(context.Context) error{b.keepUp, b.sweepMillion, b.rotateMillion, b.growth} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}
