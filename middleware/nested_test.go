package inboxmw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestSameInboxTwicePassesThrough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		twice func(f *fixture) message.HandlerMiddleware
	}{
		{"one inbox added twice", func(f *fixture) message.HandlerMiddleware { return f.inbox.Middleware }},
		{"two inboxes on one store", func(f *fixture) message.HandlerMiddleware {
			return inboxmw.MustNew(f.store, &inboxmw.Config{Logger: f.logs}).Middleware
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{})
			h := f.wrap(c.twice(f)(produces("m1")))
			wantEqual(t, "messages", uuids(mustHandle(t, h, f.message("o1"))), []string{"m1"})
			wantEqual(t, "messages of the duplicate", uuids(mustHandle(t, h, f.message("o1"))), []string{"m1"})
			wantEqual(t, "messages", uuids(mustHandle(t, h, f.message("o2"))), []string{"m1"})
			wantEqual(t, "effects", f.store.committed(), []string{"o1", "o2"})
			wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{inbox.Processed, inbox.Duplicate, inbox.Processed})
			if n := len(f.store.asked()); n != 3 {
				t.Errorf("the store was asked %d times", n)
			}
			f.logs.wantLines(t, 1, "info", "twice", handlerName)
		})
	}
}

func TestSameInboxTwiceIsSeenOnceByObservers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		handler inboxmw.Handler
		want    inbox.Outcome
	}{
		{inboxmw.Handler{}, inbox.Processed},
		{inboxmw.Handler{Unprotected: true}, inbox.Unprotected},
		{inboxmw.Handler{Skip: func(*message.Message) bool { return true }}, inbox.Skipped},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			t.Parallel()
			f := setup(t, c.handler)
			nothing := func(*message.Message) ([]*message.Message, error) { return nil, nil }
			mustHandle(t, f.wrap(f.wrap(nothing)), f.message("o1"))
			wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{c.want})
		})
	}
}

func TestOtherInboxInsideIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		other func(f *fixture) message.HandlerMiddleware
	}{
		{"on another store", func(*fixture) message.HandlerMiddleware { return inboxmw.MustNew(newMemory(), nil).Middleware }},
		{"as another consumer", func(f *fixture) message.HandlerMiddleware {
			return inboxmw.MustNew(f.store, &inboxmw.Config{Handlers: map[string]inboxmw.Handler{handlerName: {Consumer: "other"}}}).Middleware
		}},
		{"with another key", func(f *fixture) message.HandlerMiddleware {
			return inboxmw.MustNew(f.store, &inboxmw.Config{Handler: inboxmw.Handler{Key: inboxmw.PayloadHash}}).Middleware
		}},
		{"with settings of its own by With", func(f *fixture) message.HandlerMiddleware { return f.inbox.With(inboxmw.Handler{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{})
			ran := false
			_, err := f.wrap(c.other(f)(func(*message.Message) ([]*message.Message, error) {
				ran = true
				return nil, nil
			}))(f.message("o1"))
			if !errors.Is(err, inbox.ErrNested) || ran {
				t.Errorf("the handler ran: %t; got %v", ran, err)
			}
			wantText(t, err, "Config.Handlers", key("o1").String())
			if n := len(f.store.asked()); n != 1 {
				t.Errorf("the store was asked %d times", n)
			}
			if _, ok := f.store.entry(key("o1")); ok {
				t.Error("the key is kept")
			}
			wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{inbox.Failed})
		})
	}
}

func TestUnprotectedInboxInsideLeavesTheTransactionOfTheMessage(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	inner := inboxmw.MustNew(newMemory(), &inboxmw.Config{Handler: inboxmw.Handler{Unprotected: true}})
	mustHandle(t, f.wrap(inner.Middleware(writes("1"))), f.message("o1"))
	wantEqual(t, "effects", f.store.committed(), []string{"1"})
}

// duplicator and retry do what Watermill's middlewares of these names do.
func duplicator(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		first, err := h(msg)
		if err != nil {
			return nil, err
		}
		second, err := h(msg)
		return append(first, second...), err
	}
}

func retry(attempts int) message.HandlerMiddleware {
	return func(h message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) (out []*message.Message, err error) {
			ctx := msg.Context()
			for range attempts {
				msg.SetContext(ctx)
				if out, err = h(msg); err == nil {
					return out, nil
				}
			}
			return out, err
		}
	}
}

func TestDuplicatorOutside(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	out := mustHandle(t, duplicator(f.wrap(produces("m1"))), f.message("o1"))
	wantEqual(t, "effects", f.store.committed(), []string{"o1"})
	wantEqual(t, "messages", uuids(out), []string{"m1", "m1"})
}

func TestRetryOutsideHasAFreshTransactionForEachAttempt(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	var seen []*memoryTx
	var ended []error
	var contexts []context.Context
	mustHandle(t, retry(3)(f.wrap(func(msg *message.Message) ([]*message.Message, error) {
		for _, ctx := range contexts {
			_, err := inbox.Tx[*memoryTx](ctx)
			ended = append(ended, err)
		}
		contexts = append(contexts, msg.Context())
		tx := inbox.MustTx[*memoryTx](msg.Context())
		seen = append(seen, tx)
		mutate(msg)
		tx.Write("1")
		if len(seen) < 3 {
			return nil, errHandler
		}
		return nil, nil
	})), f.message("o1"))
	if len(seen) != 3 || seen[0] == seen[1] || seen[1] == seen[2] {
		t.Errorf("transactions %p", seen)
	}
	for _, err := range ended {
		if !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("that of an earlier attempt: %v", err)
		}
	}
	wantEqual(t, "effects", f.store.committed(), []string{"1"})
	for _, d := range f.store.asked() {
		wantEqual(t, "key", d.Key, key("o1"))
	}
}
