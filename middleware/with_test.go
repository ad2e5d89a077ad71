package inboxmw_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// Around a Middleware or Plugin of the same inbox, With alone has the say.
func TestWithAroundTheSameInbox(t *testing.T) {
	t.Parallel()
	byOrder := inboxmw.Metadata("order_id")
	for _, c := range []struct {
		name    string
		handler string
		general inboxmw.Handler // of Config
		with    inboxmw.Handler
		uuid    string
		want    inbox.Key // empty: the handler is not protected
		outcome inbox.Outcome
	}{
		{name: "no settings", uuid: "o1", want: key("o1"), outcome: inbox.Processed},
		{name: "another consumer", with: inboxmw.Handler{Consumer: "billing"}, uuid: "o1", want: inbox.Key{Consumer: "billing", MessageID: "o1"}, outcome: inbox.Processed},
		{name: "another key", with: inboxmw.Handler{Key: byOrder}, uuid: "o1", want: key("~metadata:order_id:17"), outcome: inbox.Processed},
		{name: "another key, of a message that the inner one has no key for", with: inboxmw.Handler{Key: byOrder}, want: key("~metadata:order_id:17"), outcome: inbox.Processed},
		{name: "unprotected", with: inboxmw.Handler{Unprotected: true}, uuid: "o1", outcome: inbox.Unprotected},
		{name: "skipped", with: inboxmw.Handler{Skip: func(*message.Message) bool { return true }}, uuid: "o1", outcome: inbox.Skipped},
		{
			name:    "not skipped, although the inner one would",
			general: inboxmw.Handler{Skip: func(*message.Message) bool { return true }},
			with:    inboxmw.Handler{Skip: func(*message.Message) bool { return false }},
			uuid:    "o1", want: key("o1"), outcome: inbox.Processed,
		},
		{name: "protected, although the inner one leaves the handler unprotected", general: inboxmw.Handler{Unprotected: true}, uuid: "o1", want: key("o1"), outcome: inbox.Processed},
		{name: "a relay", handler: "requeuer", uuid: "o1", want: inbox.Key{Consumer: "requeuer", MessageID: "o1"}, outcome: inbox.Processed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, c.general)
			if c.handler != "" {
				f.ctx = routed(t, c.handler, publishTopic)
			}
			h := f.inbox.With(c.with)(f.inbox.Middleware(func(msg *message.Message) ([]*message.Message, error) {
				tx, err := inbox.Tx[*memoryTx](msg.Context())
				if protected := err == nil; protected != (c.want != inbox.Key{}) {
					t.Errorf("got %v", err)
				}
				if err == nil {
					tx.Write("1")
				}
				return nil, nil
			}))
			msg := f.message(c.uuid)
			msg.Metadata.Set("order_id", "17")
			mustHandle(t, h, msg)
			wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{c.outcome})
			for _, d := range f.store.asked() {
				wantEqual(t, "key", d.Key, c.want)
			}
			f.logs.wantLines(t, 0, "info")
		})
	}
}

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
