package components_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// TestPoisonedMessageThatIsSentAgain sends a message again, with its UUID, when
// the handler is mended.
func TestPoisonedMessageThatIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		outside bool
		outcome inbox.Outcome
		orders  int
	}{
		"is processed if the poison queue stands outside":          {outside: true, outcome: inbox.Processed, orders: 1},
		"is a duplicate, and never processed, if it stands inside": {outcome: inbox.Duplicate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, cfg := filteredPoisonQueue(t, &ledger{}), inboxmw.Config{}
			if !row.outside {
				cfg.Handler.Inside = []message.HandlerMiddleware{m}
			}
			s := openShop(t, cfg)
			if row.outside {
				s.router.AddMiddleware(m)
			}
			attempts := 0
			err := addToEventProcessor(s, handlerName, func(ctx context.Context, id string) error {
				if attempts++; attempts == 1 {
					return errHandler
				}
				return write(ctx, "orders", id)
			})
			if err != nil {
				t.Fatal(err)
			}
			s.router.AddPlugin(s.in.Plugin)
			s.start()
			s.deliver(&orderPlaced{ID: "o1"})
			await(t, s.ends, "the delivery that is poisoned")
			s.deliver(&orderPlaced{ID: "o1"})
			s.wantOutcomes(row.outcome)
			s.stop()
			s.wantCount("orders", row.orders)
		})
	}
}

// Recoverer outermost has a panic nacked: it passes what stands inside of it.
func TestPanicIsPoisonedAndRetriedIfRecovererStandsInsideThose(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		middleware maker
		want       result
	}{
		"Recoverer, PoisonQueue, Retry": {
			middleware: chain(plain(middleware.Recoverer), filteredPoisonQueue, plain(retry(1))),
			want:       nacked(2, 2),
		},
		"PoisonQueue, Retry, Recoverer": {
			middleware: chain(filteredPoisonQueue, plain(retry(1)), plain(middleware.Recoverer)),
			want:       acked(2, 2).but(func(r *result) { r.poisoned = 1 }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := trial{middleware: row.middleware, attempts: []attempt{panics, panics}, deliveries: 2}.run(t, outside)
			wantEqual(t, "result", got, row.want)
		})
	}
}

// Timeout leaves its own context on the message, which is over when it returns.
func TestRetryOutsideTimeoutNeedsResetContextOnRetry(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		retry middleware.Retry
		want  result
	}{
		"without it no retry comes to the handler": {want: nacked(1, 4)},
		"with it the retry succeeds":               {retry: middleware.Retry{ResetContextOnRetry: true}, want: whole(2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.retry.MaxRetries, row.retry.InitialInterval = 3, time.Millisecond
			m := chain(plain(row.retry.Middleware), plain(middleware.Timeout(patience)))
			got := trial{middleware: m, attempts: []attempt{fail}, deliveries: 1}.run(t, outside)
			wantEqual(t, "result", got, row.want)
		})
	}
}

// A handler that does not look at its deadline goes on; what counts is the commit.
func TestTimeoutBoundsTheCommitOnlyIfItStandsOutside(t *testing.T) {
	t.Parallel()
	for where, committed := range map[place]int{outside: 0, inside: 1} {
		t.Run(string(where), func(t *testing.T) {
			t.Parallel()
			m, cfg := middleware.Timeout(time.Second), inboxmw.Config{}
			if where == inside {
				cfg.Handler.Inside = []message.HandlerMiddleware{m}
			}
			s, q := openShop(t, cfg), newQueue(t)
			if where == outside {
				s.router.AddMiddleware(m)
			}
			s.router.AddPlugin(s.in.Plugin)
			s.router.AddConsumerHandler(handlerName, "orders", q, inboxmw.TxConsumerHandler(func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) error {
				if err := book(ctx, tx, msg); err != nil {
					return err
				}
				<-ctx.Done()
				return nil
			}))
			s.start()
			_, acked := q.deliver(message.NewMessage("m1", nil), 1)
			s.stop()
			s.wantCount("bookings", committed)
			s.wantCount(keys, committed)
			wantEqual(t, "acked", acked, committed == 1)
		})
	}
}

// A message that waits inside waits with its transaction open: on SQLite, for one,
// nobody else can write meanwhile.
func TestThrottleInsideHoldsAConnection(t *testing.T) {
	t.Parallel()
	for where, held := range map[place]int{outside: 0, inside: 1} {
		t.Run(string(where), func(t *testing.T) {
			t.Parallel()
			var s *shop
			inUse := make(chan int, 1)
			waits := []message.HandlerMiddleware{
				func(next message.HandlerFunc) message.HandlerFunc {
					return func(msg *message.Message) ([]*message.Message, error) {
						inUse <- s.db.Stats().InUse
						return next(msg)
					}
				},
				middleware.NewThrottle(100, time.Second).Middleware,
			}
			cfg := inboxmw.Config{}
			if where == inside {
				cfg.Handler.Inside = waits
			}
			s = openShop(t, cfg)
			q := newQueue(t)
			if where == outside {
				s.router.AddMiddleware(waits...)
			}
			s.router.AddPlugin(s.in.Plugin)
			s.router.AddConsumerHandler(handlerName, "orders", q, inboxmw.TxConsumerHandler(book))
			s.start()
			q.deliver(message.NewMessage("m1", nil), 1)
			wantEqual(t, "connections in use before the wait", <-inUse, held)
			s.stop()
			s.wantCount("bookings", 1)
		})
	}
}

// chain makes one middleware of several, the first one outermost.
func chain(makers ...maker) maker {
	return func(t *testing.T, poison message.Publisher) message.HandlerMiddleware {
		t.Helper()
		return func(h message.HandlerFunc) message.HandlerFunc {
			for _, m := range slices.Backward(makers) {
				h = m(t, poison)(h)
			}
			return h
		}
	}
}
