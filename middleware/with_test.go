package inboxmw_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestWith(t *testing.T) {
	t.Parallel()

	t.Run("its settings count, and zero fields take the values of Config.Handler", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{Source: fixed("shop"), Key: inboxmw.PayloadHash})
		h := f.inbox.With(inboxmw.Handler{Key: inboxmw.UUID})(writes("1"))
		mustHandle(t, h, f.message("o1"))
		wantEqual(t, "key", f.store.asked()[0].Key, inbox.Key{Consumer: handlerName, Source: "shop", MessageID: "o1"})
	})
	t.Run("the consumer is the handler's name unless it says another", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		mustHandle(t, f.inbox.With(inboxmw.Handler{})(writes("1")), f.message("o1"))
		mustHandle(t, f.inbox.With(inboxmw.Handler{Consumer: "billing"})(writes("2")), f.message("o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"1", "2"})
	})
	t.Run("it can leave a handler unprotected", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		mustHandle(t, f.inbox.With(inboxmw.Handler{Unprotected: true})(func(*message.Message) ([]*message.Message, error) { return nil, nil }), f.message("o1"))
		wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{inbox.Unprotected})
	})
	t.Run("one With around several handlers keeps them apart", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		with := f.inbox.With(inboxmw.Handler{Produced: inboxmw.Reject()})
		mustHandle(t, with(writes("1")), f.message("o1"))
		mustHandle(t, with(writes("2")), deliverable(routed(t, "other", ""), "o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"1", "2"})
	})
	t.Run("in a router it protects the handler that it is added to, and no other", func(t *testing.T) {
		t.Parallel()
		store, w := newMemory(), &watcher{}
		in := inboxmw.MustNew(store, &inboxmw.Config{Observers: []inbox.Observer{w}})
		p := newPlugged(t, map[string]message.HandlerFunc{"plain": func(*message.Message) ([]*message.Message, error) { return nil, nil }})
		p.AddHandler(handlerName, subscribeTopic, oneMessage{}, publishTopic, &published{}, writes("1")).
			AddMiddleware(in.With(inboxmw.Handler{Source: fixed("shop")}))
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "effects", store.committed(), []string{"1"})
		wantEqual(t, "outcomes", w.outcomes(t), []inbox.Outcome{inbox.Processed})
	})
}
