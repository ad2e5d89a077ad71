package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// way is how the handler is protected.
type way string

const (
	withoutLine   way = "without the line"
	withLine      way = "with the line"
	writtenByHand way = "inbox by hand"
)

// outcome is what a run has left in the database and with the broker.
type outcome struct {
	deliveries int
	invoices   tally
	emails     tally
}

// run processes the orders in one way, with workers that are killed, and counts.
func run(ctx context.Context, w way, dir string, seed uint64, orders []line) (outcome, error) {
	database := filepath.Join(dir, string(w)+".db")
	if err := createTables(ctx, database); err != nil {
		return outcome{}, err
	}
	log, err := os.Create(filepath.Join(dir, string(w)+".log")) //nolint:gosec // in our temporary folder
	if err != nil {
		return outcome{}, err
	}
	defer log.Close() //nolint:errcheck // the workers wrote it

	self, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}

	b := newBroker(orders)
	stops := plan(seed, len(orders))
	for worker := 0; !b.done(); worker++ {
		var next stop
		if worker < len(stops) {
			next = stops[worker]
		}
		cmd := exec.CommandContext(ctx, self, "-seed", strconv.FormatUint(seed, 10), //nolint:gosec // ourselves, see runWorker
			"worker", string(w), database, strconv.Itoa(worker+1))
		cmd.Stderr = log
		if err = b.serve(ctx, cmd, next); err != nil {
			return outcome{}, err
		}
	}

	invoices, err := countInvoices(ctx, database)
	if err != nil {
		return outcome{}, err
	}
	emails := map[string]int{}
	for id, received := range b.emails {
		emails[id] = len(received)
	}
	return outcome{deliveries: b.deliveries, invoices: count(orders, invoices), emails: count(orders, emails)}, nil
}

// plan spreads over the run six kills and, in its middle, a close.
func plan(seed uint64, orders int) []stop {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // faults, not secrets
	stops := make([]stop, 7)
	for i := range stops {
		stops[i] = stop{
			after: (i*orders + r.IntN(orders)) / (len(stops) + 1),
			on:    []kind{delivered, published}[r.IntN(2)],
			kill:  i != len(stops)/2,
		}
	}
	return stops
}
