package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"
)

const (
	orders  = 500
	before  = 100 // so many are sent before the first deploy
	members = 2

	// quiet is how long nothing comes when all is done: no broker says so. It is
	// more than each takes to deliver again what a closed member held.
	quiet = 3 * time.Second
)

// run is what happens to the orders, and what is known of it.
type run struct {
	setting
	broker  *broker
	db      *sqlx.DB
	trouble *trouble

	deliveries atomic.Int64
	deploys    atomic.Int64
	last       atomic.Int64 // when something came

	mu      sync.Mutex
	outputs map[string]map[string]bool // by order, the message ids
}

// perform sends all orders to the members, and returns when all is done.
func (r *run) perform(ctx context.Context) (err error) {
	stop, err := r.listen(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	group := make([]*member, members)
	if r.broker.forgetful {
		group = group[:1]
	}
	for i := range group {
		if group[i], err = r.startMember(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, group[i].close()) }()
	}

	if err := r.send(ctx, 0, before); err != nil {
		return err
	}
	working, workingCtx := errgroup.WithContext(ctx)
	working.Go(func() error { return r.send(workingCtx, before, orders) })
	if !r.broker.forgetful {
		working.Go(func() error { return r.deploy(workingCtx, group) })
	}
	if err := working.Wait(); err != nil {
		return err
	}
	return r.wait(ctx)
}

// deploy closes each member in mid-work, one after the other, and puts a new one
// in its place.
func (r *run) deploy(ctx context.Context, group []*member) error {
	for i, old := range group {
		if err := old.closeInMidWork(ctx); err != nil {
			return err
		}
		m, err := r.startMember(ctx)
		if err != nil {
			return err
		}
		group[i] = m
		r.deploys.Add(1)
	}
	return nil
}

// wait returns when each order has its output and nothing comes any more.
func (r *run) wait(ctx context.Context) error {
	ticker := time.NewTicker(quiet / 30)
	defer ticker.Stop()
	for {
		r.mu.Lock()
		outputs := len(r.outputs)
		r.mu.Unlock()
		if outputs == orders && time.Since(time.Unix(0, r.last.Load())) > quiet {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
