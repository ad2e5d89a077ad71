package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
)

// measured is what a load of messages saw in its time.
type measured struct {
	rate    float64 // messages in a second
	longest time.Duration
}

// load delivers new messages until ctx is done, and calls each with how long each
// took. Each worker has a row of its own to update, as an effect.
func (b *bench) load(ctx context.Context, s *inboxsql.Store, each func(worker int, took time.Duration)) error {
	if _, err := b.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS bench_effects (worker int PRIMARY KEY, n bigint NOT NULL)"); err != nil {
		return err
	}
	if _, err := b.db.ExecContext(ctx, "INSERT INTO bench_effects SELECT w, 0 FROM generate_series(0, $1) w ON CONFLICT DO NOTHING", b.workers); err != nil {
		return err
	}
	failures := make(chan error, b.workers)
	var workers sync.WaitGroup
	for w := range b.workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				started := time.Now()
				d := inbox.Delivery{Key: inbox.Key{Consumer: "invoices", MessageID: watermill.NewUUID()}}
				_, _, err := s.Once(context.WithoutCancel(ctx), d, func(ctx context.Context) (inbox.Effect, error) {
					tx, err := inboxsql.StdTx(ctx)
					if err != nil {
						return inbox.Effect{}, err
					}
					_, err = tx.ExecContext(ctx, "UPDATE bench_effects SET n = n + 1 WHERE worker = $1", w)
					return inbox.Effect{}, err
				})
				if err != nil {
					failures <- err
					return
				}
				each(w, time.Since(started))
			}
		})
	}
	workers.Wait()
	close(failures)
	return <-failures
}

// measure runs a load for one cell, and beside in the meantime; nil: nothing.
func (b *bench) measure(ctx context.Context, s *inboxsql.Store, beside func(context.Context)) (measured, error) {
	return b.measureWhile(ctx, s, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, b.cell)
		defer cancel()
		if beside != nil {
			beside(ctx)
		}
		<-ctx.Done()
	})
}

// measureWhile runs a load as long as beside runs.
func (b *bench) measureWhile(ctx context.Context, s *inboxsql.Store, beside func(context.Context)) (measured, error) {
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	counts, longest := make([]int, b.workers), make([]time.Duration, b.workers)
	started := time.Now()
	go func() {
		defer stop()
		beside(loaded)
	}()
	err := b.load(loaded, s, func(w int, took time.Duration) {
		counts[w]++
		longest[w] = max(longest[w], took)
	})
	n := 0
	for _, c := range counts {
		n += c
	}
	return measured{rate: float64(n) / time.Since(started).Seconds(), longest: slices.Max(longest)}, err
}

// few are the rounds of what takes minutes.
func (b *bench) few() int { return max(b.rounds/2, 1) }

// report prints a line: the median of ratios, with the least and the greatest.
func report(what string, ratios []float64) {
	slices.Sort(ratios)
	fmt.Printf("| %s | %.2f [%.2f - %.2f] |\n", what, ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
}
