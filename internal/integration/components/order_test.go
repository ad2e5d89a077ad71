package components_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jmoiron/sqlx"
	"github.com/sony/gobreaker"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// TestRecommendedOrder sends messages of all kinds through all middlewares that
// go with the inbox, each in its place, with Duplicator next to it, so that each
// message that is processed is a duplicate at once, and is published twice.
func TestRecommendedOrder(t *testing.T) {
	t.Parallel()
	const each = 5
	w := newWorkshop()
	poison := &ledger{came: make(chan entry, 256)}
	s := openShop(t, inboxmw.Config{Handler: inboxmw.Handler{Inside: []message.HandlerMiddleware{middleware.CorrelationID}}})
	s.router.AddMiddleware(
		middleware.Recoverer,
		filteredPoisonQueue(t, poison),
		retry(3),
		middleware.NewCircuitBreaker(gobreaker.Settings{ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 1000 }}).Middleware,
		middleware.NewThrottle(10_000, time.Second).Middleware,
		middleware.Timeout(10*time.Second),
		middleware.Duplicator,
	)
	s.router.AddPlugin(s.in.Plugin) // innermost
	s.router.AddHandler(handlerName, "orders", s.broker, "mails", s.sent, inboxmw.TxHandler(w.handle))
	s.start()

	send := func(uuids ...string) {
		t.Helper()
		for _, uuid := range uuids {
			msg := message.NewMessage(uuid, []byte("{}"))
			middleware.SetCorrelationID("of "+uuid, msg)
			if err := s.broker.Publish("orders", msg); err != nil {
				t.Fatal(err)
			}
		}
	}
	good, bad := make([]string, 0, 4*each), make([]string, 0, each)
	for i := range each {
		for _, kind := range []string{"plain", "fails once", "panics once", "times out once"} {
			good = append(good, fmt.Sprintf("%s %d", kind, i))
		}
		bad = append(bad, fmt.Sprintf("broken %d", i))
	}
	send(good...)
	send(bad...)
	for range 2 * len(good) {
		await(t, s.sent.came, "a mail")
	}
	for range bad {
		await(t, poison.came, "a poison message")
	}
	s.wantWhole(good)
	wantEqual(t, "poison", slices.Sorted(slices.Values(uuids(poison.all()))), bad)

	// What was poisoned left no key, so that it can be sent again when it is mended.
	w.mended.Store(true)
	send(bad...)
	for range 2 * len(bad) {
		await(t, s.sent.came, "a mail of what was poison")
	}
	s.stop()
	s.wantWhole(slices.Concat(good, bad))
	wantEqual(t, "poison messages", len(poison.all()), len(bad))
}

// wantWhole fails unless each message has its effects once, and its one mail twice.
func (s *shop) wantWhole(messages []string) {
	s.t.Helper()
	for _, table := range []string{"orders", "bookings", keys, "(SELECT DISTINCT id FROM orders)"} {
		s.wantCount(table, len(messages))
	}
	mails := s.sent.all()
	wantEqual(s.t, "mails", len(mails), 2*len(messages))
	wantEqual(s.t, "different mails", len(uuids(mails)), len(messages))
	for _, m := range mails {
		if m.uuid != "mail "+m.correlation {
			s.t.Errorf("mail %q has the correlation id %q", m.uuid, m.correlation)
		}
	}
}

// workshop is a handler that has trouble, as the message's UUID says.
type workshop struct {
	met    chan map[string]bool // UUIDs that had their trouble
	mended atomic.Bool
}

func newWorkshop() *workshop {
	w := &workshop{met: make(chan map[string]bool, 1)}
	w.met <- map[string]bool{}
	return w
}

func (w *workshop) handle(ctx context.Context, _ *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
	if err := write(ctx, "orders", msg.UUID); err != nil {
		return nil, err
	}
	first := w.first(msg.UUID)
	switch kind := strings.TrimRight(msg.UUID, " 0123456789"); {
	case kind == "broken" && !w.mended.Load(), kind == "fails once" && first:
		return nil, errHandler
	case kind == "panics once" && first:
		panic("out of ink")
	case kind == "times out once" && first:
		// What a statement says whose context is over: SQLite has one writer, and
		// a handler that really waited would have the others wait with it.
		return nil, context.DeadlineExceeded
	}
	if err := write(ctx, "bookings", msg.UUID); err != nil {
		return nil, err
	}
	return []*message.Message{message.NewMessage("mail of "+msg.UUID, nil)}, nil
}

// first reports whether this is the first run for the message.
func (w *workshop) first(uuid string) bool {
	met := <-w.met
	defer func() { w.met <- met }()
	first := !met[uuid]
	met[uuid] = true
	return first
}
