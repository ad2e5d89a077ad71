package components_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/delay"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jmoiron/sqlx"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// trial delivers one message to a handler behind the inbox and one of Watermill's
// middlewares.
type trial struct {
	middleware maker
	attempts   []attempt // between the two effects of each run; beyond the last one, nothing
	away       bool      // the table of the inbox cannot be reached
	produced   inboxmw.ProducedPolicy
	deliveries int // at most
}

// result is what became of it, as counted from the database and the publishers.
type result struct {
	attempts int  // runs of the handler
	asked    int  // deliveries that came to the inbox
	acked    bool // otherwise the broker has more deliveries to come

	orders     int // the effect before the handler fails
	bookings   int // the effect after that
	keys       int
	mails      int // published by the router, or in the outbox
	different  int // UUIDs among them
	correlated int // those with a correlation id
	poisoned   int
	delayed    bool // the broker is told to wait before the next delivery
	logged     int  // errors that the inbox has logged
}

// place is where a middleware stands.
type place string

const (
	outside place = "outside"
	inside  place = "in Handler.Inside"
	added   place = "added after the inbox"
)

func (r trial) run(t *testing.T, where place) result {
	t.Helper()
	poison := &ledger{}
	m := r.middleware(t, poison)
	logger := watermill.NewCaptureLogger()
	cfg := inboxmw.Config{Handler: inboxmw.Handler{Produced: r.produced}, Logger: logger}
	if where == inside {
		cfg.Handler.Inside = []message.HandlerMiddleware{m}
	}
	s, q := openShop(t, cfg), newQueue(t)
	var attempts, asked atomic.Int64
	if where == outside {
		s.router.AddMiddleware(m)
	}
	s.router.AddMiddleware(counts(&asked), s.in.Middleware)
	if where == added {
		s.router.AddMiddleware(m)
	}
	s.router.AddHandler(handlerName, "orders", q, "mails", s.sent, counts(&attempts)(inboxmw.TxHandler(r.handler())))
	s.start()

	msg := message.NewMessage("m1", []byte("{}"))
	middleware.SetCorrelationID("c1", msg)
	if r.away {
		s.exec("ALTER TABLE " + keys + " RENAME TO away")
	}
	last, acked := q.deliver(msg, r.deliveries)
	s.stop()
	if r.away {
		s.exec("ALTER TABLE away RENAME TO " + keys)
	}

	mails, stored := s.sent.all(), s.mustCount("outbox")
	return result{
		attempts:   int(attempts.Load()),
		asked:      int(asked.Load()),
		acked:      acked,
		orders:     s.mustCount("orders"),
		bookings:   s.mustCount("bookings"),
		keys:       s.mustCount(keys),
		mails:      len(mails) + stored,
		different:  len(uuids(mails)) + stored,
		correlated: correlated(mails) + s.mustCount("outbox WHERE correlation_id <> ''"),
		poisoned:   len(poison.all()),
		delayed:    last.Metadata.Get(delay.DelayedForKey) != "",
		logged:     len(logger.Captured()[watermill.ErrorLogLevel]),
	}
}

// handler has two effects and one message. As most do, it makes a new UUID in
// each run.
func (r trial) handler() func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
	run := 0
	return func(ctx context.Context, _ *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
		if err := write(ctx, "orders", msg.UUID); err != nil {
			return nil, err
		}
		if run++; run <= len(r.attempts) {
			if err := r.attempts[run-1](ctx); err != nil {
				return nil, err
			}
		}
		if err := write(ctx, "bookings", msg.UUID); err != nil {
			return nil, err
		}
		return []*message.Message{message.NewMessage(watermill.NewUUID(), []byte("{}"))}, nil
	}
}

// counts is a middleware that counts what comes to it.
func counts(n *atomic.Int64) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			n.Add(1)
			return next(msg)
		}
	}
}
