package inboxmw_test

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// byValue is a store that cannot be compared.
type byValue []int

func (byValue) Once(context.Context, inbox.Delivery, func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	return inbox.Entry{}, false, nil
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		store inbox.Store
		cfg   *inboxmw.Config
		says  []string
		is    error
	}{
		{name: "a nil store", says: []string{"the store is nil"}},
		{name: "a nil pointer as the store", store: (*memory)(nil), says: []string{"the store is nil"}},
		{name: "a store that is not comparable", store: byValue(nil), says: []string{"inboxmw_test.byValue", "not comparable", "use a pointer"}},
		{
			name:  "one consumer for all handlers",
			store: newMemory(),
			cfg:   &inboxmw.Config{Handler: inboxmw.Handler{Consumer: "all"}},
			says:  []string{"Config.Handler.Consumer", `"all"`, "Config.Handlers"},
		},
		{
			name:  "two handlers that are given one consumer",
			store: newMemory(),
			cfg:   &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"a": {Consumer: "x"}, "b": {Consumer: "x"}}},
			says:  []string{`"a"`, `"b"`, `consumer "x"`},
			is:    inbox.ErrConsumer,
		},
		{
			name:  "a consumer that is the name of another handler",
			store: newMemory(),
			cfg:   &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"a": {Consumer: "b"}, "b": {}}},
			says:  []string{`"a"`, `"b"`},
			is:    inbox.ErrConsumer,
		},
		{
			name:  "settings for a handler without a name",
			store: newMemory(),
			cfg:   &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"": {}}},
			says:  []string{"Config.Handlers", "without a name"},
		},
		{
			name:  "a nil observer",
			store: newMemory(),
			cfg:   &inboxmw.Config{Observers: []inbox.Observer{&watcher{}, nil}},
			says:  []string{"Config.Observers[1]", "nil"},
		},
		{
			name:  "a nil middleware for all handlers",
			store: newMemory(),
			cfg:   &inboxmw.Config{Handler: inboxmw.Handler{Inside: []message.HandlerMiddleware{nil}}},
			says:  []string{"Config.Handler.Inside[0]", "nil"},
		},
		{
			name:  "a nil middleware for one handler",
			store: newMemory(),
			cfg:   &inboxmw.Config{Handlers: map[string]inboxmw.Handler{handlerName: {Inside: []message.HandlerMiddleware{nil}}}},
			says:  []string{"Config.Handlers", handlerName, "Inside[0]", "nil"},
		},
		{
			name:  "two mistakes at once",
			store: newMemory(),
			cfg:   &inboxmw.Config{Handler: inboxmw.Handler{Consumer: "all"}, Observers: []inbox.Observer{nil}},
			says:  []string{"Config.Handler.Consumer", "Config.Observers[0]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := inboxmw.New(c.store, c.cfg)
			wantText(t, err, append(c.says, "inboxmw: ")...)
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			if in != nil {
				t.Error("an inbox comes with the error")
			}
		})
	}
}

func TestMustNewPanicsWhereNewFails(t *testing.T) {
	t.Parallel()
	defer func() {
		err, _ := recover().(error)
		wantText(t, err, "the store is nil")
	}()
	inboxmw.MustNew(nil, nil)
}

func TestNewLeavesTheConfigAsItWas(t *testing.T) {
	t.Parallel()
	var cfg inboxmw.Config
	cfg.Handlers = map[string]inboxmw.Handler{handlerName: {}}
	in := inboxmw.MustNew(newMemory(), &cfg)
	mustHandle(t, in.Middleware(writes("1")), deliverable(routed(t, handlerName, ""), "1"))
	if !reflect.DeepEqual(cfg, inboxmw.Config{Handlers: map[string]inboxmw.Handler{handlerName: {}}}) {
		t.Errorf("defaults were written into the caller's Config: %+v", cfg)
	}
}

func TestSettingsAreThoseOfTheTimeOfNew(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg := &inboxmw.Config{Handlers: map[string]inboxmw.Handler{handlerName: {Consumer: "billing"}}}
	in := inboxmw.MustNew(store, cfg)
	cfg.Handlers[handlerName] = inboxmw.Handler{Unprotected: true}
	mustHandle(t, in.Middleware(writes("1")), deliverable(routed(t, handlerName, ""), "1"))
	if _, ok := store.entry(inbox.Key{Consumer: "billing", MessageID: "1"}); !ok {
		t.Errorf("the store was asked for %v", store.asked())
	}
}

func TestInboxIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	other := routed(t, "other", publishTopic)
	h := f.wrap(produces("m1"))
	var deliveries sync.WaitGroup
	for i := range 50 {
		for _, ctx := range []context.Context{f.ctx, other} {
			deliveries.Go(func() {
				uuid := strconv.Itoa(i)
				for range 2 {
					out, err := h(deliverable(ctx, uuid))
					if err != nil || len(out) != 1 {
						t.Errorf("message %s: %v, %v", uuid, uuids(out), err)
					}
				}
			})
		}
	}
	deliveries.Wait()
	if n := len(f.store.committed()); n != 100 {
		t.Errorf("%d effects", n)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	h := f.wrap(produces("m1"))
	mustHandle(t, h, f.message("o1"))

	t.Run("the key is the name in the router and the UUID, without a source", func(t *testing.T) {
		t.Parallel()
		wantEqual(t, "key", f.store.asked()[0].Key, key("o1"))
	})
	t.Run("the event type is the metadata field name", func(t *testing.T) {
		t.Parallel()
		wantEqual(t, "event type", f.store.asked()[0].EventType, "OrderPlaced")
	})
	t.Run("produced messages are replayed", func(t *testing.T) {
		t.Parallel()
		wantEqual(t, "replayed", uuids(mustHandle(t, h, f.message("o1"))), []string{"m1"})
	})
	t.Run("the record is bounded by DefaultMaxRecord", func(t *testing.T) {
		t.Parallel()
		large := f.wrap(func(*message.Message) ([]*message.Message, error) {
			return []*message.Message{message.NewMessage("m1", make([]byte, inboxmw.DefaultMaxRecord))}, nil
		})
		_, err := large(f.message("large"))
		if !errors.Is(err, inbox.ErrProduced) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without a logger nothing breaks", func(t *testing.T) {
		t.Parallel()
		silent := inboxmw.MustNew(newMemory(), nil).Middleware(writes("1"))
		msg := f.message("1")
		msg.Ack()
		mustHandle(t, silent, msg)
		mustHandle(t, silent, f.message("1"))
	})
}

func TestHandlers(t *testing.T) {
	t.Parallel()

	t.Run("a zero field takes the value of Config.Handler, another one its own", func(t *testing.T) {
		t.Parallel()
		store := newMemory()
		in := inboxmw.MustNew(store, &inboxmw.Config{
			Handler: inboxmw.Handler{
				Key:       inboxmw.Metadata("id"),
				Source:    fixed("shop"),
				EventType: func(*message.Message) string { return "general" },
			},
			Handlers: map[string]inboxmw.Handler{handlerName: {Source: fixed("partner"), Consumer: "billing"}},
		})
		for name, want := range map[string]inbox.Delivery{
			handlerName: {Key: inbox.Key{Consumer: "billing", Source: "partner", MessageID: "~metadata:id:7"}, EventType: "general"},
			"other":     {Key: inbox.Key{Consumer: "other", Source: "shop", MessageID: "~metadata:id:7"}, EventType: "general"},
		} {
			msg := deliverable(routed(t, name, ""), "1")
			msg.Metadata.Set("id", "7")
			mustHandle(t, in.Middleware(writes(name)), msg)
			calls := store.asked()
			wantEqual(t, name, calls[len(calls)-1], want)
		}
	})
	t.Run("Unprotected counts as it is", func(t *testing.T) {
		t.Parallel()
		store := newMemory()
		in := inboxmw.MustNew(store, &inboxmw.Config{
			Handler:  inboxmw.Handler{Unprotected: true},
			Handlers: map[string]inboxmw.Handler{handlerName: {}},
		})
		nothing := func(*message.Message) ([]*message.Message, error) { return nil, nil }
		mustHandle(t, in.Middleware(nothing), deliverable(routed(t, "other", ""), "1"))
		mustHandle(t, in.Middleware(nothing), deliverable(routed(t, handlerName, ""), "1"))
		if calls := store.asked(); len(calls) != 1 || calls[0].Key.Consumer != handlerName {
			t.Errorf("the store was asked for %v", calls)
		}
	})
	t.Run("Inside of a handler replaces that of all, the first one outermost", func(t *testing.T) {
		t.Parallel()
		var order []string
		step := func(name string) message.HandlerMiddleware {
			return func(h message.HandlerFunc) message.HandlerFunc {
				return func(msg *message.Message) ([]*message.Message, error) {
					if _, err := inbox.Tx[writer](msg.Context()); err != nil {
						t.Errorf("%s stands outside of the transaction: %v", name, err)
					}
					order = append(order, name)
					return h(msg)
				}
			}
		}
		in := inboxmw.MustNew(newMemory(), &inboxmw.Config{
			Handler:  inboxmw.Handler{Inside: []message.HandlerMiddleware{step("general")}},
			Handlers: map[string]inboxmw.Handler{handlerName: {Inside: []message.HandlerMiddleware{step("first"), step("second")}}},
		})
		mustHandle(t, in.Middleware(writes("1")), deliverable(routed(t, handlerName, ""), "1"))
		mustHandle(t, in.Middleware(writes("1")), deliverable(routed(t, "other", ""), "1"))
		wantEqual(t, "order", order, []string{"first", "second", "general"})
	})
}
