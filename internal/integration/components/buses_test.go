package components_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

const handlerName = "orders"

func TestBusPublishesAfterTheCommitAndAgainForADuplicate(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.open(t, func(s *shop, publish bus) handleFunc {
				return func(ctx context.Context, id string) error {
					err := orders(publish)(ctx, id)
					wantEqual(t, "published before the commit", s.sent.all(), nil)
					return err
				}
			})
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Processed)
			first := await(t, s.sent.came, "what was published")
			wantEqual(t, "published", first, entry{topic: c.topic, uuid: first.uuid, orders: 1, keys: 1})

			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Duplicate)
			wantEqual(t, "published for the duplicate", await(t, s.sent.came, "what was published again"), first)
			s.stop()
			s.wantCount("orders", 1)
			s.wantCount(keys, 1)
			wantEqual(t, "publishes", len(s.sent.all()), 2)
		})
	}
}

func TestBusOfAnAttemptThatFailsPublishesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			attempts := 0
			s := c.open(t, func(_ *shop, publish bus) handleFunc {
				return func(ctx context.Context, id string) error {
					err := orders(publish)(ctx, id)
					switch attempts++; attempts {
					case 1:
						return errHandler
					case 2:
						panic("out of ink")
					}
					return err
				}
			})
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Failed, inbox.Failed, inbox.Processed)
			s.stop()
			s.wantCount("orders", 1)
			if all := s.sent.all(); len(all) != 1 || all[0].orders != 1 {
				t.Errorf("published %+v, want what the last attempt did", all)
			}
		})
	}
}

func TestBusPublishesNothingIfTheCommitFails(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			attempts := 0
			s := c.open(t, func(_ *shop, publish bus) handleFunc {
				return func(ctx context.Context, id string) error {
					if attempts++; attempts == 1 {
						return errors.Join(writeWrongly(ctx, id), publish(ctx, id))
					}
					return orders(publish)(ctx, id)
				}
			})
			s.deliver(c.consume("o1"))
			e := await(t, s.ends, "the delivery whose commit fails")
			var failed *inbox.StoreError
			if !errors.As(e.Err, &failed) || failed.Op != inbox.OpCommit {
				t.Fatalf("got %v, want a failed commit", e.Err)
			}
			s.wantOutcomes(inbox.Processed)
			s.stop()
			s.wantCount("orders", 1)
			if all := s.sent.all(); len(all) != 1 || all[0].orders != 1 {
				t.Errorf("published %+v, want what the second attempt did", all)
			}
		})
	}
}

func TestBusThatCannotPublishHasTheNextDeliveryPublish(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.open(t, func(_ *shop, publish bus) handleFunc { return orders(publish) })
			s.sent.fails = 2
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Processed, inbox.Duplicate, inbox.Duplicate)
			s.stop()
			s.wantCount("orders", 1)
			s.wantCount(keys, 1)
			wantEqual(t, "publishes", len(s.sent.all()), 1)
		})
	}
}

func TestBusOutsideAHandlerPublishesAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, inboxmw.Config{})
			publish := c.bus(s, s.in.Publisher("events", s.sent))
			server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := publish(r.Context(), "o1"); err != nil {
					http.Error(w, err.Error(), http.StatusBadGateway)
					return
				}
				if len(s.sent.all()) != 1 {
					t.Error("not published when Publish returned")
				}
			})
			for _, want := range []int{http.StatusOK, http.StatusBadGateway} {
				response := httptest.NewRecorder()
				server.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
				if response.Code != want {
					t.Errorf("status %d, want %d", response.Code, want)
				}
				s.sent.fails = 1
			}
			s.wantCount(keys, 0)
		})
	}
}

func TestBusRefusesAGoroutineThatOutlivesItsHandler(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			over, refused := make(chan struct{}), make(chan error, 1)
			s := c.open(t, func(_ *shop, publish bus) handleFunc {
				return func(ctx context.Context, id string) error {
					go func() {
						<-over
						refused <- publish(ctx, id)
					}()
					return write(ctx, "orders", id)
				}
			})
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Processed)
			close(over)
			if err := await(t, refused, "the goroutine"); !errors.Is(err, inbox.ErrTxEnded) {
				t.Errorf("got %v", err)
			}
			s.stop()
			s.wantCount("orders", 1)
			wantEqual(t, "published", s.sent.all(), nil)
		})
	}
}

func TestBusThatIsNotThereFailsAndDropsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			old := c.open(t, func(_ *shop, publish bus) handleFunc { return orders(publish) })
			old.sent.fails = math.MaxInt
			old.deliver(c.consume("o1"))
			old.wantOutcomes(inbox.Processed)
			old.stop()
			wantEqual(t, "published before the name was changed", old.sent.all(), nil)

			renamed := openShopOn(t, old.db, inboxmw.Config{})
			errs := make(chan error, 64)
			renamed.router.AddMiddleware(passes(errs))
			c.handle(renamed, orders(c.bus(renamed, renamed.in.Publisher("bus", renamed.sent))))
			renamed.deliver(c.consume("o1"))
			if err := await(t, errs, "the delivery"); !errors.Is(err, inbox.ErrRecord) {
				t.Errorf("got %v", err)
			}
			renamed.stop()
			wantEqual(t, "published under another name", renamed.sent.all(), nil)

			mended := openShopOn(t, old.db, inboxmw.Config{})
			c.handle(mended, orders(c.bus(mended, mended.in.Publisher("events", mended.sent))))
			mended.deliver(c.consume("o1"))
			mended.wantOutcomes(inbox.Duplicate)
			got := await(t, mended.sent.came, "what the record holds")
			wantEqual(t, "published", got, entry{topic: c.topic, uuid: got.uuid, orders: 1, keys: 1})
			mended.stop()
		})
	}
}

func TestBusOfTwoHandlersPublishesOnceForEach(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, inboxmw.Config{})
			publish := c.bus(s, s.in.Publisher("events", s.sent))
			if err := c.add(s, "other", orders(publish)); err != nil {
				t.Fatal(err)
			}
			c.handle(s, orders(publish))
			for range 2 {
				s.deliver(c.consume("o1"))
				for range 2 {
					await(t, s.sent.came, "what a handler published")
				}
			}
			s.stop()
			s.wantCount("orders", 2)
			s.wantCount(keys, 2)
			wantEqual(t, "different messages", len(uuids(s.sent.all())), 2)
		})
	}
}

func TestBusReachesAHandlerThatIsProtectedToo(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, inboxmw.Config{})
			publish := c.bus(s, s.in.Publisher("broker", s.broker))
			s.router.AddConsumerHandler("bookings", c.topic, s.broker, inboxmw.TxConsumerHandler(book))
			c.handle(s, orders(publish))
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Processed, inbox.Processed)
			s.deliver(c.consume("o1"))
			s.wantOutcomes(inbox.Duplicate, inbox.Duplicate)
			s.stop()
			s.wantCount("orders", 1)
			s.wantCount("bookings", 1)
		})
	}
}

// Nor does it outside: a bus is no part of what passes the middlewares.
func TestCorrelationIDDoesNotReachWhatABusPublishes(t *testing.T) {
	t.Parallel()
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, inboxmw.Config{Handler: inboxmw.Handler{Inside: []message.HandlerMiddleware{middleware.CorrelationID}}})
			s.router.AddMiddleware(middleware.CorrelationID, func(next message.HandlerFunc) message.HandlerFunc {
				return func(msg *message.Message) ([]*message.Message, error) {
					middleware.SetCorrelationID("c1", msg)
					return next(msg)
				}
			})
			c.handle(s, orders(c.bus(s, s.in.Publisher("events", s.sent))))
			s.deliver(c.consume("o1"))
			wantEqual(t, "correlation id", await(t, s.sent.came, "what was published").correlation, "")
		})
	}
}

// open opens a shop with one protected handler.
func (c component) open(t *testing.T, h func(s *shop, publish bus) handleFunc) *shop {
	t.Helper()
	s := openShop(t, inboxmw.Config{})
	c.handle(s, h(s, c.bus(s, s.in.Publisher("events", s.sent))))
	return s
}

// handle adds the handler and starts the router.
func (c component) handle(s *shop, h handleFunc) {
	s.t.Helper()
	if err := c.add(s, handlerName, h); err != nil {
		s.t.Fatal(err)
	}
	s.router.AddPlugin(s.in.Plugin)
	s.start()
}

// orders is a handler with an effect, that publishes.
func orders(publish bus) handleFunc {
	return func(ctx context.Context, id string) error {
		if err := write(ctx, "orders", id); err != nil {
			return err
		}
		return publish(ctx, id)
	}
}
