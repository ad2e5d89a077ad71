package soak_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/internal/ledger"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
	"github.com/watermill-inbox/inbox/testutil"
)

// What a commit can come to without the service's knowledge.
const committedUnheard = "commit failed, and was applied"

// TestSoak is short; it is long with INBOX_TEST_LONG=1. SOAK_SEED repeats what went
// wrong, though not in which order: that is up to the machine.
func TestSoak(t *testing.T) {
	t.Parallel()
	long := os.Getenv("INBOX_TEST_LONG") != ""
	for _, p := range places() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			messages, deliveries := 600, 2_000
			if long {
				messages, deliveries = 30_000, 100_000
				if p.name == "PostgreSQL" {
					messages, deliveries = 300_000, 1_000_000
				}
			}
			seed := seed(t)
			c := newChance(seed)
			b := newBroker(c, messages, deliveries)
			database, tables := p.open(t, c)
			in := database.Harness().Open(t, testutil.Options{})
			watch := &watcher{chance: c, committed: map[string]bool{}, unheard: map[string]bool{}}
			inboxOn := func(s inbox.Store) message.HandlerMiddleware {
				return inboxmw.MustNew(s, &inboxmw.Config{Observers: []inbox.Observer{watch}}).Middleware
			}
			began := time.Now()
			k := &killer{place: p, chance: c, db: tables().DB}
			write := func(ctx context.Context, id string) error { return errors.Join(k.visit(ctx), in.Write(ctx, id)) }
			serve(t, b, handler(c, write), inboxOn(in.Store), inboxOn(in.Again()))
			k.kills.Wait()
			verdict := ledger.Check(ledger.Book{Sent: b.ids, Effects: effects(t, tables()), Outputs: b.outputs, Each: outputsOfEach})
			t.Logf("%s, seed %d: %d messages, %d deliveries, %d of them duplicates, in %s: %s",
				p.name, seed, messages, b.delivered, watch.duplicates, time.Since(began).Round(time.Second), verdict)
			t.Logf("trouble: %s", c)
			if !verdict.OK() {
				t.Error("the ledger does not balance")
				if err := verdict.Print(t.Output()); err != nil {
					t.Error(err)
				}
			}
			if b.delivered < deliveries {
				t.Errorf("%d deliveries, want %d", b.delivered, deliveries)
			}
			troubles := []string{
				ackLost, copiesAtOnce, canceled, mutated, publishFails, publishBreaks, publishUnheard,
				failsBefore, failsAfter, panics, changes,
			}
			if long {
				troubles = append(troubles, p.troubles...)
			}
			for _, trouble := range troubles {
				if c.seen(trouble) == 0 {
					t.Errorf("it never came to: %s", trouble)
				}
			}
		})
	}
}

// TestSoakOfHandMadeInboxes shows that the trouble is real: what people write by hand
// does not survive it.
func TestSoakOfHandMadeInboxes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guard func(s inbox.Store) message.HandlerMiddleware // nil: none, and effects go through the pool
		fault func(v ledger.Verdict) []string
	}{
		"none: effects are doubled": {
			nil,
			func(v ledger.Verdict) []string { return v.Doubled },
		},
		"one that acks duplicates: outputs are lost": {
			acksDuplicates,
			func(v ledger.Verdict) []string { return v.OutputsLost },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chance := newChance(seed(t))
			b := newBroker(chance, 300, 1_000)
			database, tables := places()[2].open(t, chance)
			in := database.Harness().Open(t, testutil.Options{})
			if c.guard != nil {
				serve(t, b, handler(chance, in.Write), c.guard(in.Store))
			} else {
				serve(t, b, handler(chance, func(ctx context.Context, id string) error {
					_, err := tables().DB.ExecContext(ctx, "INSERT INTO "+tables().EffectsTable()+" (id) VALUES (?)", id) //nolint:gosec // a table of the test's own
					return err
				}))
			}
			verdict := ledger.Check(ledger.Book{Sent: b.ids, Effects: effects(t, tables()), Outputs: b.outputs, Each: outputsOfEach})
			t.Logf("%s", verdict)
			if len(c.fault(verdict)) == 0 {
				t.Error("the trouble does no harm, so surviving it shows nothing")
			}
		})
	}
}

// serve runs a router for each inbox, or one without, until the broker has nothing
// more to deliver.
func serve(t *testing.T, b *broker, h message.HandlerFunc, inboxes ...message.HandlerMiddleware) {
	t.Helper()
	if len(inboxes) == 0 {
		inboxes = []message.HandlerMiddleware{func(h message.HandlerFunc) message.HandlerFunc { return h }}
	}
	var routers sync.WaitGroup
	for _, in := range inboxes {
		router, err := message.NewRouter(message.RouterConfig{CloseTimeout: time.Minute}, watermill.NopLogger{})
		if err != nil {
			t.Fatal(err)
		}
		router.AddMiddleware(middleware.Recoverer, in)
		router.AddHandler("invoices", topicIn, b, topicOut, b, h)
		routers.Go(func() {
			if err := router.Run(context.Background()); err != nil {
				t.Errorf("the router: %v", err)
			}
		})
	}
	routers.Wait()
	b.chance.end() // the tables are removed in peace
}

// acksDuplicates is the inbox that people write by hand: one transaction with the key
// and the effects, then the outputs; a duplicate is acked, and that is all.
func acksDuplicates(s inbox.Store) message.HandlerMiddleware {
	return func(h message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) (outputs []*message.Message, err error) {
			key := inbox.Key{Consumer: "by hand", MessageID: msg.UUID}
			_, _, err = s.Once(msg.Context(), inbox.Delivery{Key: key}, func(ctx context.Context) (inbox.Effect, error) {
				msg.SetContext(ctx)
				outputs, err = h(msg)
				return inbox.Effect{}, err
			})
			return outputs, err
		}
	}
}

// watcher counts duplicates, and commits that were applied though they failed.
type watcher struct {
	chance     *chance
	mu         sync.Mutex
	committed  map[string]bool // known to be
	unheard    map[string]bool // whose commit failed
	duplicates int
}

// DeliveryStart implements [inbox.Observer].
func (w *watcher) DeliveryStart(ctx context.Context, _ inbox.Delivery) context.Context { return ctx }

// DeliveryEnd implements [inbox.Observer].
func (w *watcher) DeliveryEnd(_ context.Context, e inbox.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := e.Delivery.Key.MessageID
	switch e.Outcome {
	case inbox.Processed:
		w.committed[id] = true
	case inbox.Duplicate:
		w.duplicates++
		if !w.committed[id] && w.unheard[id] {
			w.chance.saw(committedUnheard)
		}
		w.committed[id] = true
	case inbox.Failed:
		if store, ok := errors.AsType[*inbox.StoreError](e.Err); ok && store.Op == inbox.OpCommit {
			w.unheard[id] = true
		}
	case inbox.Discarded, inbox.InFlight, inbox.Unprotected, inbox.Skipped:
	}
}

// seed is that of SOAK_SEED, or any.
func seed(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("SOAK_SEED"), strconv.FormatUint(rand.Uint64()>>32, 10)), 10, 64) //nolint:gosec // not a secret
	if err != nil {
		t.Fatalf("SOAK_SEED: %v", err)
	}
	return n
}
