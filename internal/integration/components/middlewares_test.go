package components_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/sony/gobreaker"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// TestMiddlewares has one row for each of Watermill's middlewares and for what is
// to be known of it: what becomes of a message if it stands outside the inbox, and
// if it stands inside.
func TestMiddlewares(t *testing.T) {
	t.Parallel()
	for name, row := range rows() {
		for where, want := range map[place]result{outside: row.outside, inside: row.inside, added: row.inside} {
			t.Run(name+", "+string(where), func(t *testing.T) {
				t.Parallel()
				wantEqual(t, "result", row.run(t, where), want)
			})
		}
	}
}

// row is a middleware in both places.
type row struct {
	trial
	outside, inside result
}

// rows have the names that they have in docs/middleware.md.
func rows() map[string]row {
	return map[string]row{
		"Retry, handler fails once": {
			trial:   trial{middleware: plain(retry(1)), attempts: []attempt{fail}, deliveries: 1},
			outside: whole(2, 2),
			inside:  whole(2, 1).but(func(r *result) { r.orders = 2 }), // those of the failed attempt stay
		},
		"Timeout, handler too slow once": {
			trial:   trial{middleware: plain(middleware.Timeout(time.Second)), attempts: []attempt{hang}, deliveries: 2},
			outside: whole(2, 2),
			inside:  whole(2, 2),
		},
		"PoisonQueue, handler fails": {
			trial:   trial{middleware: poisonQueue, attempts: []attempt{fail}, deliveries: 1},
			outside: acked(1, 1).but(func(r *result) { r.poisoned = 1 }),
			inside:  half(1, 1).but(func(r *result) { r.poisoned = 1 }),
		},
		"PoisonQueue, database away": {
			trial:   trial{middleware: poisonQueue, away: true, deliveries: 2},
			outside: acked(0, 1).but(func(r *result) { r.poisoned = 1 }), // nothing is wrong with the message
			inside:  nacked(0, 2),
		},
		"PoisonQueueWithFilter(ToPoison), handler fails": {
			trial:   trial{middleware: filteredPoisonQueue, attempts: []attempt{fail}, deliveries: 1},
			outside: acked(1, 1).but(func(r *result) { r.poisoned = 1 }),
			inside:  half(1, 1).but(func(r *result) { r.poisoned = 1 }),
		},
		"PoisonQueueWithFilter(ToPoison), database away": {
			trial:   trial{middleware: filteredPoisonQueue, away: true, deliveries: 2},
			outside: nacked(0, 2),
			inside:  nacked(0, 2),
		},
		"IgnoreErrors, handler fails": {
			trial:   trial{middleware: plain(middleware.NewIgnoreErrors([]error{errHandler}).Middleware), attempts: []attempt{fail}, deliveries: 1},
			outside: acked(1, 1),
			inside:  half(1, 1),
		},
		"Recoverer, handler panics once": {
			trial:   trial{middleware: plain(middleware.Recoverer), attempts: []attempt{panics}, deliveries: 2},
			outside: whole(2, 2),
			inside:  whole(2, 2),
		},
		"Duplicator": {
			trial:   trial{middleware: plain(middleware.Duplicator), deliveries: 1},
			outside: whole(1, 2).but(func(r *result) { r.mails = 2 }), // the second a replay
			inside:  whole(2, 1).but(func(r *result) { r.orders, r.bookings, r.mails, r.different = 2, 2, 2, 2 }),
		},
		"InstantAck, handler fails once": {
			trial:   trial{middleware: plain(middleware.InstantAck), attempts: []attempt{fail}, deliveries: 2},
			outside: acked(1, 1).but(func(r *result) { r.logged = 1 }), // lost
			inside:  acked(1, 1).but(func(r *result) { r.logged = 1 }), // lost
		},
		"Deduplicator, handler fails once": {
			trial:   trial{middleware: deduplicator, attempts: []attempt{fail}, deliveries: 2},
			outside: acked(1, 1),                                     // lost
			inside:  acked(1, 2).but(func(r *result) { r.keys = 1 }), // lost, and taken for processed
		},
		"CorrelationID, Replay": {
			trial:   trial{middleware: plain(middleware.CorrelationID), deliveries: 1},
			outside: whole(1, 1).but(func(r *result) { r.correlated = 1 }),
			inside:  whole(1, 1).but(func(r *result) { r.correlated = 1 }),
		},
		"CorrelationID, Outbox": {
			trial:   trial{middleware: plain(middleware.CorrelationID), produced: inboxmw.Outbox(openOutbox), deliveries: 1},
			outside: whole(1, 1), // without the id
			inside:  whole(1, 1).but(func(r *result) { r.correlated = 1 }),
		},
		"CircuitBreaker, handler fails": {
			trial:   trial{middleware: circuitBreaker, attempts: []attempt{fail, fail, fail}, deliveries: 3},
			outside: nacked(1, 1),
			inside:  nacked(1, 3), // open, and yet each delivery is a transaction
		},
		"CircuitBreaker, database away": {
			trial:   trial{middleware: circuitBreaker, away: true, deliveries: 3},
			outside: nacked(0, 1),
			inside:  nacked(0, 3), // never opens
		},
		"Throttle": {
			trial:   trial{middleware: plain(middleware.NewThrottle(1000, time.Second).Middleware), deliveries: 1},
			outside: whole(1, 1),
			inside:  whole(1, 1),
		},
		"DelayOnError, handler fails": {
			trial:   trial{middleware: delayOnError, attempts: []attempt{fail}, deliveries: 1},
			outside: nacked(1, 1).but(func(r *result) { r.delayed = true }),
			inside:  nacked(1, 1), // put back with the rest of the message
		},
		"RandomFail": {
			trial:   trial{middleware: plain(middleware.RandomFail(1)), deliveries: 2},
			outside: nacked(0, 0), // tests nothing of the inbox
			inside:  nacked(0, 2),
		},
		"RandomPanic": {
			trial:   trial{middleware: plain(middleware.RandomPanic(1)), deliveries: 2},
			outside: nacked(0, 0), // tests nothing of the inbox
			inside:  nacked(0, 2),
		},
	}
}

// whole is a message whose effects are there once.
func whole(attempts, asked int) result {
	return result{attempts: attempts, asked: asked, acked: true, orders: 1, bookings: 1, keys: 1, mails: 1, different: 1}
}

// half is a message of which half the effects are there, and which never comes again.
func half(attempts, asked int) result {
	return result{attempts: attempts, asked: asked, acked: true, orders: 1, keys: 1}
}

// acked is a message that left nothing, and never comes again.
func acked(attempts, asked int) result {
	return result{attempts: attempts, asked: asked, acked: true}
}

// nacked is a message that left nothing, and comes again.
func nacked(attempts, asked int) result {
	return result{attempts: attempts, asked: asked}
}

func (r result) but(change func(*result)) result {
	change(&r)
	return r
}

// attempt is what happens in a run of the handler.
type attempt func(ctx context.Context) error

func fail(context.Context) error   { return errHandler }
func panics(context.Context) error { panic("out of ink") }
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// maker makes a middleware. What it poisons goes to the publisher.
type maker func(t *testing.T, poison message.Publisher) message.HandlerMiddleware

func plain(m message.HandlerMiddleware) maker {
	return func(*testing.T, message.Publisher) message.HandlerMiddleware { return m }
}

func retry(times int) message.HandlerMiddleware {
	return middleware.Retry{MaxRetries: times, InitialInterval: time.Millisecond, ResetContextOnRetry: true}.Middleware
}

func poisonQueue(t *testing.T, poison message.Publisher) message.HandlerMiddleware {
	t.Helper()
	m, err := middleware.PoisonQueue(poison, "poison")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func filteredPoisonQueue(t *testing.T, poison message.Publisher) message.HandlerMiddleware {
	t.Helper()
	m, err := middleware.PoisonQueueWithFilter(poison, "poison", inboxmw.ToPoison)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The following have a state, so that each trial gets its own.

func deduplicator(*testing.T, message.Publisher) message.HandlerMiddleware {
	return (&middleware.Deduplicator{}).Middleware
}

func circuitBreaker(*testing.T, message.Publisher) message.HandlerMiddleware {
	return middleware.NewCircuitBreaker(gobreaker.Settings{
		Timeout:     time.Hour,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 },
	}).Middleware
}

func delayOnError(*testing.T, message.Publisher) message.HandlerMiddleware {
	return (&middleware.DelayOnError{InitialInterval: time.Second, MaxInterval: time.Minute, Multiplier: 2}).Middleware
}
