package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/retention"
)

// with makes the table of a store for a case, and drops it after.
func (b *bench) with(ctx context.Context, cfg inboxsql.Config, do func(s *inboxsql.Store, table string) error) (err error) {
	cfg.Table = fmt.Sprintf("bench_%08x", rand.Uint32()) //nolint:gosec // a name, not a secret
	s, err := inboxsql.New(b.db, &cfg)
	if err != nil {
		return err
	}
	if err = s.CreateTable(ctx); err != nil {
		return err
	}
	defer func() {
		for _, suffix := range []string{"", "_current", "_previous"} {
			if _, dropErr := b.db.ExecContext(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS "+cfg.Table+suffix); err == nil {
				err = dropErr
			}
		}
	}()
	return do(s, cfg.Table)
}

// fill adds rows whose window is over, or is not.
func (b *bench) fill(ctx context.Context, table string, rows int, expired bool) error {
	age := "1 day"
	if expired {
		age = "8 days"
	}
	insert := "INSERT INTO " + table + " (consumer, source, message_id, received_at, processed_at) " + //nolint:gosec // our own name
		"SELECT 'invoices', '', gen_random_uuid(), now() - $1::interval + n * interval '1 microsecond', now() FROM generate_series(1, $2::int) n"
	_, err := b.db.ExecContext(ctx, insert, age, rows)
	return err
}

// keepUp has keys expire as fast as they come: the window is a second, so that they
// go a minute later.
func (b *bench) keepUp(ctx context.Context) error {
	return b.with(ctx, inboxsql.Config{Window: time.Second}, func(s *inboxsql.Store, _ string) error {
		warm, cancel := context.WithTimeout(ctx, time.Second+inbox.ClockSkew)
		defer cancel()
		if err := b.load(warm, s, func(int, time.Duration) {}); err != nil {
			return err
		}
		removed := 0
		c := retention.MustNew(s, &retention.Config{Interval: 100 * time.Millisecond, OnSweep: func(r retention.Report, _ error) { removed += r.Removed }})
		var ratios []float64
		for range b.rounds {
			quiet, err := b.measure(ctx, s, nil)
			if err != nil {
				return err
			}
			beside, err := b.measure(ctx, s, c.Run)
			if err != nil {
				return err
			}
			ratios = append(ratios, beside.rate/quiet.rate)
		}
		report(fmt.Sprintf("messages while the cleaner removes %d keys, as many as come", removed), ratios)
		return nil
	})
}

func (b *bench) sweepMillion(ctx context.Context) error {
	return b.with(ctx, inboxsql.Config{}, func(s *inboxsql.Store, table string) error {
		var ratios []float64
		var took []time.Duration
		c := retention.MustNew(s, nil) // another one would have to wait for the lease of the first
		for range b.few() {
			if err := b.fill(ctx, table, b.million, true); err != nil {
				return err
			}
			quiet, err := b.measure(ctx, s, nil)
			if err != nil {
				return err
			}
			var swept retention.Report
			var failure error
			beside, err := b.measureWhile(ctx, s, func(ctx context.Context) {
				swept, failure = c.Sweep(ctx)
			})
			switch {
			case err != nil || failure != nil:
				return fmt.Errorf("sweep: %w", errors.Join(err, failure))
			case swept.Removed < b.million:
				return fmt.Errorf("sweep: it removed %+v", swept)
			}
			ratios = append(ratios, beside.rate/quiet.rate)
			took = append(took, swept.Duration)
		}
		slices.Sort(took)
		report(fmt.Sprintf("messages beside a sweep of %d keys, which takes %s", b.million, took[len(took)/2].Round(time.Second)), ratios)
		return nil
	})
}

func (b *bench) rotateMillion(ctx context.Context) error {
	return b.with(ctx, inboxsql.Config{Dialect: inboxsql.PostgresRotating}, func(s *inboxsql.Store, table string) error {
		var over []float64
		for range b.few() {
			if err := b.fill(ctx, table+"_previous", b.million, true); err != nil {
				return err
			}
			quiet, err := b.measure(ctx, s, nil)
			if err != nil {
				return err
			}
			var failure error
			beside, err := b.measure(ctx, s, func(ctx context.Context) {
				_, failure = retention.MustNew(s, nil).Sweep(ctx)
			})
			if err != nil || failure != nil {
				return fmt.Errorf("rotate: %w", errors.Join(err, failure))
			}
			over = append(over, float64(beside.longest-quiet.longest)/float64(time.Millisecond))
			// The keys of this round, which are young, would keep the next rotation away.
			if _, err := b.db.ExecContext(ctx, "TRUNCATE "+table+"_previous"); err != nil {
				return err
			}
		}
		slices.Sort(over)
		fmt.Printf("| the longest message beside a rotation of %d keys, in ms over quiet | %.0f [%.0f - %.0f] |\n", b.million, over[len(over)/2], over[0], over[len(over)-1])
		return nil
	})
}

// growth compares the claims of a table with those of one that is ten times larger.
func (b *bench) growth(ctx context.Context) error {
	return b.with(ctx, inboxsql.Config{}, func(small *inboxsql.Store, smallTable string) error {
		return b.with(ctx, inboxsql.Config{}, func(large *inboxsql.Store, largeTable string) error {
			if err := b.fill(ctx, smallTable, b.million, false); err != nil {
				return err
			}
			if err := b.fill(ctx, largeTable, 10*b.million, false); err != nil {
				return err
			}
			for _, statement := range []string{"VACUUM ANALYZE " + smallTable, "VACUUM ANALYZE " + largeTable, "CHECKPOINT"} {
				if _, err := b.db.ExecContext(ctx, statement); err != nil {
					return err
				}
			}
			var ratios []float64
			for range b.rounds {
				of, err := b.measure(ctx, small, nil)
				if err != nil {
					return err
				}
				at, err := b.measure(ctx, large, nil)
				if err != nil {
					return err
				}
				ratios = append(ratios, at.rate/of.rate)
			}
			report(fmt.Sprintf("messages at %d keys, to those at %d", 10*b.million, b.million), ratios)
			return nil
		})
	})
}

// size prints the bytes of a row with its indexes, for the formula of sizes.
func (b *bench) size(ctx context.Context) error {
	return b.with(ctx, inboxsql.Config{}, func(_ *inboxsql.Store, table string) error {
		if err := b.fill(ctx, table, b.million, false); err != nil {
			return err
		}
		var bytes int64
		if err := b.db.QueryRowContext(ctx, "SELECT pg_total_relation_size($1)", table).Scan(&bytes); err != nil {
			return err
		}
		fmt.Printf("%d bytes a row with its indexes (ids are UUIDs, no record or result)\n\n", bytes/int64(b.million))
		return nil
	})
}
