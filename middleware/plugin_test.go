package inboxmw_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// counted is a subscriber with one message that counts who asked for it.
type counted struct {
	oneMessage
	subscribed *atomic.Int32
}

func (c counted) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	c.subscribed.Add(1)
	return c.oneMessage.Subscribe(ctx, topic)
}

// plugged is a router whose handlers get one message each, and then end.
type plugged struct {
	*message.Router
	logs       *logs
	subscribed atomic.Int32
}

func newPlugged(t *testing.T, handlers map[string]message.HandlerFunc) *plugged {
	t.Helper()
	p := &plugged{logs: &logs{}}
	router, err := message.NewRouter(message.RouterConfig{}, p.logs)
	if err != nil {
		t.Fatal(err)
	}
	p.Router = router
	for name, h := range handlers {
		router.AddHandler(name, subscribeTopic, counted{subscribed: &p.subscribed}, publishTopic, &published{}, h)
	}
	return p
}

func TestPluginAbortsTheStart(t *testing.T) {
	t.Parallel()
	errDatabase := errors.New("the database is gone")
	missing := inbox.Finding{Fatal: true, Problem: "there is no table", Remedy: "create it"}
	narrow := inbox.Finding{Fatal: true, Problem: "a column merges ids", Remedy: "make it BINARY"}
	for _, c := range []struct {
		name     string
		store    *checked
		handlers map[string]inboxmw.Handler
		says     []string
		is       error
	}{
		{name: "for what the store finds fatal, with the remedy", store: &checked{findings: []inbox.Finding{missing, narrow}}, says: []string{missing.String(), narrow.String()}},
		{name: "if the store cannot look", store: &checked{err: errDatabase}, says: []string{errDatabase.Error()}, is: errDatabase},
		{name: "for settings of a handler that the router does not have", store: &checked{}, handlers: map[string]inboxmw.Handler{"invioces": {}}, says: []string{`"invioces"`, "invoices, reports"}},
		{name: "for two handlers that are one consumer", store: &checked{}, handlers: map[string]inboxmw.Handler{"invoices": {Consumer: "reports"}}, says: []string{`"invoices"`, `"reports"`}, is: inbox.ErrConsumer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.store.memory = newMemory()
			p := newPlugged(t, map[string]message.HandlerFunc{handlerName: writes("1"), "reports": writes("2")})
			p.AddPlugin(inboxmw.MustNew(c.store, &inboxmw.Config{Handlers: c.handlers}).Plugin)
			err := p.Run(t.Context())
			wantText(t, err, c.says...)
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			if n := p.subscribed.Load(); n != 0 {
				t.Errorf("%d handlers had subscribed", n)
			}
		})
	}
}

func TestPluginStarts(t *testing.T) {
	t.Parallel()

	t.Run("with advice, which is logged with its remedy", func(t *testing.T) {
		t.Parallel()
		store := &checked{memory: newMemory(), findings: []inbox.Finding{{Problem: "the pool is small", Remedy: "make it larger"}}}
		p := newPlugged(t, map[string]message.HandlerFunc{handlerName: writes("1")})
		p.AddPlugin(inboxmw.MustNew(store, nil).Plugin)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.logs.wantLines(t, 1, "info", "the pool is small", "make it larger")
		wantEqual(t, "effects", store.committed(), []string{"1"})
		if !store.deadline {
			t.Error("the check is not bounded")
		}
	})
	t.Run("with a store that cannot check", func(t *testing.T) {
		t.Parallel()
		store := newMemory()
		p := newPlugged(t, map[string]message.HandlerFunc{handlerName: writes("1")})
		p.AddPlugin(inboxmw.MustNew(store, nil).Plugin)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "effects", store.committed(), []string{"1"})
	})
	t.Run("and says which handlers it protects, to the router's logger", func(t *testing.T) {
		t.Parallel()
		nothing := func(*message.Message) ([]*message.Message, error) { return nil, nil }
		p := newPlugged(t, map[string]message.HandlerFunc{"b": writes("b"), "a": writes("a"), "c": nothing, "requeuer": nothing})
		p.AddPlugin(inboxmw.MustNew(newMemory(), &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"c": {Unprotected: true}}}).Plugin)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.logs.wantLines(t, 1, "info", "protects", "handlers:a, b", "unprotected:c, requeuer")
		p.logs.wantLines(t, 1, "info", "left unprotected", "requeuer")
	})
	t.Run("and leaves a logger of its own as it is", func(t *testing.T) {
		t.Parallel()
		own := &logs{}
		p := newPlugged(t, map[string]message.HandlerFunc{handlerName: writes("1")})
		p.AddPlugin(inboxmw.MustNew(newMemory(), &inboxmw.Config{Logger: own}).Plugin)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		own.wantLines(t, 1, "info", "protects", handlerName)
		p.logs.wantLines(t, 0, "info", "protects")
	})
	t.Run("with two handlers that are one consumer if one of them is unprotected", func(t *testing.T) {
		t.Parallel()
		p := newPlugged(t, map[string]message.HandlerFunc{
			handlerName: writes("1"),
			"old":       func(*message.Message) ([]*message.Message, error) { return nil, nil },
		})
		p.AddPlugin(inboxmw.MustNew(newMemory(), &inboxmw.Config{Handlers: map[string]inboxmw.Handler{
			handlerName: {Consumer: "old"}, "old": {Unprotected: true},
		}}).Plugin)
		if err := p.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestPluginIsInnermost(t *testing.T) {
	t.Parallel()
	store := newMemory()
	var order []string
	step := func(name string) message.HandlerMiddleware {
		return func(h message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				if _, err := inbox.Tx[*memoryTx](msg.Context()); !errors.Is(err, inbox.ErrNoTx) {
					t.Errorf("%s stands inside: %v", name, err)
				}
				order = append(order, name)
				return h(msg)
			}
		}
	}
	attempts := 0
	p := newPlugged(t, nil)
	added := p.AddConsumerHandler(handlerName, subscribeTopic, oneMessage{}, func(msg *message.Message) error {
		order = append(order, "handler")
		inbox.MustTx[*memoryTx](msg.Context()).Write("1")
		if attempts++; attempts < 3 {
			return errHandler
		}
		return nil
	})
	p.AddMiddleware(step("before"))
	p.AddPlugin(inboxmw.MustNew(store, nil).Plugin)
	p.AddMiddleware(step("after"), retry(3))
	added.AddMiddleware(step("handler's own"))
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "order", order, []string{"before", "after", "handler's own", "handler", "handler's own", "handler", "handler's own", "handler"})
	wantEqual(t, "effects", store.committed(), []string{"1"})
}

func TestPluginBesideTheMiddleware(t *testing.T) {
	t.Parallel()
	store := newMemory()
	in := inboxmw.MustNew(store, nil)
	p := newPlugged(t, map[string]message.HandlerFunc{handlerName: writes("1")})
	p.AddMiddleware(in.Middleware)
	p.AddPlugin(in.Plugin)
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "effects", store.committed(), []string{"1"})
	p.logs.wantLines(t, 1, "info", "twice", handlerName)
}

func TestPluginInsideWith(t *testing.T) {
	t.Parallel()
	store := newMemory()
	in := inboxmw.MustNew(store, nil)
	var failed error
	p := newPlugged(t, nil)
	p.AddHandler(handlerName, subscribeTopic, oneMessage{}, publishTopic, &published{}, produces("m1")).AddMiddleware(
		func(h message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) (out []*message.Message, err error) {
				out, failed = h(msg)
				return out, failed
			}
		},
		in.With(inboxmw.Handler{Produced: inboxmw.Reject()}),
	)
	p.AddPlugin(in.Plugin)
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(failed, inbox.ErrProduced) {
		t.Errorf("the settings of With do not count: %v", failed)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	errDatabase := errors.New("the database is gone")
	fatal := []inbox.Finding{
		{Fatal: true, Problem: "there is no table", Remedy: "create it"},
		{Fatal: true, Problem: "a column merges ids", Remedy: "make it BINARY"},
	}
	advice := inbox.Finding{Problem: "the pool is small", Remedy: "make it larger"}
	for _, c := range []struct {
		name   string
		store  inbox.Store
		says   []string
		is     error
		advice int
	}{
		{name: "joins what is fatal, and logs the rest", store: &checked{memory: newMemory(), findings: append(fatal, advice)}, says: []string{fatal[0].String(), fatal[1].String()}, advice: 1},
		{name: "advice alone is no error", store: &checked{memory: newMemory(), findings: []inbox.Finding{advice}}, advice: 1},
		{name: "nothing found is no error", store: &checked{memory: newMemory()}},
		{name: "a store that cannot look is an error", store: &checked{memory: newMemory(), err: errDatabase}, says: []string{errDatabase.Error()}, is: errDatabase},
		{name: "a store that cannot check is taken to be right", store: newMemory()},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &logs{}
			err := inboxmw.MustNew(c.store, &inboxmw.Config{Logger: l}).Check(t.Context())
			l.wantLines(t, c.advice, "info", advice.Problem, advice.Remedy)
			if len(c.says) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantText(t, err, c.says...)
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			if err != nil && c.advice > 0 {
				l.wantLines(t, 0, "info", fatal[0].Problem)
			}
		})
	}
}
