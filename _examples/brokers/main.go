// Command brokers has the same handler process orders from the broker that you
// choose, with two members of a group that are closed in mid-work and started
// anew, and counts what came of the orders: see README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

const limit = time.Minute // far above what any broker needs

func main() {
	names := strings.Join(slices.Sorted(maps.Keys(brokers)), ", ")
	name := flag.String("broker", "gochannel", "one of "+names)
	server := flag.String("server", "", "where the broker is: a URI for amqp, host:port for redis, a DSN for sql; the others run in this process")
	seed := flag.Uint64("seed", 0, "of what goes wrong, 0 draws one")
	verbose := flag.Bool("v", false, "log to stderr, with each failure that is made on purpose")
	flag.Parse()
	for *seed == 0 {
		*seed = rand.Uint64N(10000) //nolint:gosec // faults, not secrets
	}
	open, ok := brokers[*name]
	usual, elsewhere := servers[*name]
	switch {
	case !ok:
		fail(fmt.Errorf("there is no broker %q, but %s", *name, names))
	case *server != "" && !elsewhere:
		fail(fmt.Errorf("-server means nothing here: %s runs in this process", *name))
	}
	s := setting{server: cmp.Or(*server, usual), logger: watermill.NopLogger{}}
	if *verbose {
		s.logger = watermill.NewSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
	defer cancel()
	fmt.Printf("%s, seed %d\n", *name, *seed)
	report, err := demonstrate(ctx, open, s, newTrouble(*seed))
	if err != nil {
		fail(err)
	}
	fmt.Println("ok:", report)
}

func fail(err error) {
	fmt.Println("FAILED:", err)
	os.Exit(1)
}

// demonstrate makes a run, and reports what it left. It fails if an effect or an
// output is doubled or lost.
func demonstrate(ctx context.Context, open constructor, s setting, t *trouble) (report string, err error) {
	db, dir, err := makeDatabase(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close(), os.RemoveAll(dir)) }()
	id := rand.Uint32() //nolint:gosec // a name, not a secret
	s.orders, s.invoices = fmt.Sprintf("orders_%08x", id), fmt.Sprintf("invoices_%08x", id)
	b, err := open(ctx, s)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.close()) }()

	r := &run{broker: b, setting: s, db: db, trouble: t, outputs: map[string]map[string]bool{}}
	failure := r.perform(ctx)
	c, err := r.count(context.WithoutCancel(ctx))
	if err = errors.Join(failure, err); err != nil {
		return "", fmt.Errorf("%w; %s", err, c)
	}
	fmt.Println(r.happened())
	return c.String(), c.check()
}
