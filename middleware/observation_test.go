package inboxmw_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestObserversSeeEachDeliveryOnce(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run("when "+w.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, w.handler)
			if w.prepare != nil {
				w.prepare(f)
			}
			h := w.end
			if h == nil {
				h = writes("1")
			}
			undisturbed(f.wrap(h), f.message("o1"))
			e := f.watcher.last(t)
			if n := len(f.watcher.ends); n != 1 {
				t.Errorf("%d deliveries were seen", n)
			}
			if e.Delivery.Key != key("o1") || e.Delivery.EventType != "OrderPlaced" || e.Handler != handlerName || e.Topic != subscribeTopic {
				t.Errorf("got %+v", e)
			}
			if failed := e.Outcome == inbox.Failed || e.Outcome == inbox.InFlight; failed != (e.Err != nil) {
				t.Errorf("outcome %s with error %v", e.Outcome, e.Err)
			}
		})
	}
}

func TestEventOfEachOutcome(t *testing.T) {
	t.Parallel()
	errDatabase := errors.New("the database is gone")
	for _, c := range []struct {
		name    string
		prepare func(f *fixture)
		handler message.HandlerFunc
		want    inbox.Event
		is      error
	}{
		{
			name:    "processed",
			prepare: func(*fixture) {},
			handler: produces("m1", "m2"),
			want:    inbox.Event{Outcome: inbox.Processed, Produced: 2},
		},
		{
			name:    "duplicate",
			prepare: func(f *fixture) { _, _ = f.wrap(produces("m1"))(f.message("o1")) },
			handler: produces(),
			want:    inbox.Event{Outcome: inbox.Duplicate, Produced: 1, Age: 3 * time.Minute},
		},
		{
			name:    "discarded",
			prepare: func(*fixture) {},
			handler: func(msg *message.Message) ([]*message.Message, error) {
				return nil, inbox.Discard(msg.Context(), errHandler)
			},
			want: inbox.Event{Outcome: inbox.Discarded},
		},
		{
			name:    "failed by the handler",
			prepare: func(*fixture) {},
			handler: func(*message.Message) ([]*message.Message, error) { return nil, errHandler },
			want:    inbox.Event{Outcome: inbox.Failed},
			is:      errHandler,
		},
		{
			name:    "failed at the commit",
			prepare: func(f *fixture) { f.store.fail(inbox.OpCommit, errDatabase) },
			handler: produces("m1"),
			want:    inbox.Event{Outcome: inbox.Failed},
			is:      errDatabase,
		},
		{
			name:    "busy is failed",
			prepare: func(f *fixture) { f.store.fail(inbox.OpClaim, inbox.ErrBusy) },
			handler: produces("m1"),
			want:    inbox.Event{Outcome: inbox.Failed},
			is:      inbox.ErrBusy,
		},
		{
			name:    "in flight",
			prepare: func(f *fixture) { f.store.fail(inbox.OpClaim, inbox.ErrInFlight) },
			handler: produces("m1"),
			want:    inbox.Event{Outcome: inbox.InFlight},
			is:      inbox.ErrInFlight,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{})
			c.prepare(f)
			_, err := f.wrap(c.handler)(f.message("o1"))
			got := f.watcher.last(t)
			if !errors.Is(got.Err, c.is) || !errors.Is(err, c.is) {
				t.Errorf("the event has %v, the router got %v", got.Err, err)
			}
			want := c.want
			want.Delivery = inbox.Delivery{Key: key("o1"), EventType: "OrderPlaced"}
			want.Handler, want.Topic = handlerName, subscribeTopic
			want.Err, want.Duration = got.Err, got.Duration
			wantEqual(t, "event", got, want)
		})
	}
}

func TestObserversNest(t *testing.T) {
	t.Parallel()
	var order []string
	store := newMemory()
	first, second := &watcher{name: "first", order: &order}, &watcher{name: "second", order: &order}
	in := inboxmw.MustNew(store, &inboxmw.Config{Observers: []inbox.Observer{first, second}})
	mustHandle(t, in.Middleware(func(msg *message.Message) ([]*message.Message, error) {
		order = append(order, "handler")
		tx := inbox.MustTx[*memoryTx](msg.Context())
		for _, ctx := range []context.Context{msg.Context(), tx.ctx} {
			for _, name := range []string{"first", "second"} {
				if ctx.Value(watcherKey{name: name}) == nil {
					t.Errorf("the context of observer %s does not reach handler and store", name)
				}
			}
		}
		return nil, nil
	}), deliverable(routed(t, handlerName, ""), "o1"))
	wantEqual(t, "order", order, []string{
		"start first", "start second", "handler", "end second, own context true", "end first, own context true",
	})
	wantEqual(t, "delivery at the start", first.starts[0], inbox.Delivery{Key: key("o1"), EventType: "OrderPlaced"})
}

func TestDurationIsUntilTheStoreAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{}
		in := inboxmw.MustNew(newMemory(), &inboxmw.Config{Observers: []inbox.Observer{w}})
		h := in.With(inboxmw.Handler{Consumer: handlerName})(func(*message.Message) ([]*message.Message, error) {
			<-time.After(3 * time.Second)
			return nil, nil
		})
		mustHandle(t, h, deliverable(t.Context(), "o1"))
		wantEqual(t, "duration", w.last(t).Duration, 3*time.Second)
	})
}

func TestNoPayloadIsLoggedOrToldInAnError(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run("when "+w.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, w.handler)
			if w.prepare != nil {
				w.prepare(f)
			}
			h := w.end
			if h == nil {
				h = produces("m1")
			}
			msg := f.message("o1")
			msg.Ack()
			undisturbed(f.wrap(h), msg)
			for _, level := range []string{"error", "info", "debug", "trace"} {
				f.logs.wantLines(t, 0, level, `"order"`)
			}
			if err := f.watcher.last(t).Err; err != nil && len(err.Error()) > 300 {
				t.Errorf("the error is long: %v", err)
			}
		})
	}
}
