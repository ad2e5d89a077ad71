// Command quickstart sends a thousand orders through a Watermill router whose
// handler fails and panics, and whose process is killed and restarted: once
// without the inbox, once with it. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"time"
)

// limit is far above what a run needs: nothing here waits for ever.
const limit = 3 * time.Minute

func main() {
	seed := flag.Uint64("seed", 0, "of what goes wrong, 0 draws one")
	hand := flag.Bool("by-hand", false, "show a third column: the inbox that people write by hand")
	flag.Parse()
	if flag.Arg(0) == "worker" {
		if err := runWorker(*seed, flag.Args()[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	for *seed == 0 {
		*seed = rand.Uint64N(10000) //nolint:gosec // faults, not secrets
	}
	ways := []way{withoutLine, withLine}
	if *hand {
		ways = append(ways, writtenByHand)
	}
	ok, err := demonstrate(*seed, ways)
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
	fmt.Println(ok)
}

// demonstrate runs each way, prints what came of it, and returns the last line.
func demonstrate(seed uint64, ways []way) (string, error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
	defer cancel()
	orders, err := orderLines()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "inbox-quickstart-")
	if err != nil {
		return "", err
	}
	fmt.Printf("seed %d: %d orders; the worker is killed six times and closed once\n\n", seed, len(orders))
	outcomes := map[way]outcome{}
	for _, w := range ways {
		started := time.Now()
		outcomes[w], err = run(ctx, w, dir, seed, orders)
		if err != nil {
			return "", fmt.Errorf("%s: %w; see %s", w, err, dir)
		}
		fmt.Printf("%s: %.1f s\n", w, time.Since(started).Seconds())
	}
	fmt.Printf("\n%s\n", table(ways, outcomes))
	ok, err := verdict(len(orders), outcomes[withoutLine], outcomes[withLine])
	if err != nil {
		return "", fmt.Errorf("%w; see %s", err, dir)
	}
	_ = os.RemoveAll(dir) // a folder that stays behind changes nothing that was counted
	return ok, nil
}

// runWorker is this program as the child of a broker.
func runWorker(seed uint64, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: quickstart -seed n worker way database number")
	}
	number, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	return work(context.Background(), way(args[0]), args[1], newTrouble(seed, number))
}
