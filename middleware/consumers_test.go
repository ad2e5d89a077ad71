package inboxmw_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestTwoHandlersThatAreOneConsumer(t *testing.T) {
	t.Parallel()
	store, w := newMemory(), &watcher{}
	in := inboxmw.MustNew(store, &inboxmw.Config{
		Handlers:  map[string]inboxmw.Handler{handlerName: {Consumer: "billing"}},
		Observers: []inbox.Observer{w},
	})
	mustHandle(t, in.Middleware(writes("1")), deliverable(routed(t, handlerName, ""), "o1"))
	_, err := in.Middleware(writes("2"))(deliverable(routed(t, "billing", ""), "o2"))
	if !errors.Is(err, inbox.ErrConsumer) {
		t.Errorf("got %v", err)
	}
	wantText(t, err, `"invoices"`, `"billing"`)
	if n := len(store.asked()); n != 1 {
		t.Errorf("the store was asked %d times", n)
	}
	if e := w.last(t); e.Outcome != inbox.Failed || !errors.Is(e.Err, inbox.ErrConsumer) {
		t.Errorf("the observers saw %+v", e)
	}
}

func TestTwoHandlersThatAreOneConsumerByWith(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	with := f.inbox.With(inboxmw.Handler{Consumer: "billing"})
	mustHandle(t, with(writes("1")), f.message("o1"))
	if _, err := with(writes("2"))(deliverable(routed(t, "other", ""), "o1")); !errors.Is(err, inbox.ErrConsumer) {
		t.Errorf("got %v", err)
	}
}

func TestHandlerInTwoRouters(t *testing.T) {
	t.Parallel()

	t.Run("at once is logged, once", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		second := f.wrap(writes("second"))
		first := f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			mustHandle(t, second, f.message("inner of "+msg.UUID))
			return writes("first")(msg)
		})
		mustHandle(t, first, f.message("o1"))
		mustHandle(t, first, f.message("o2"))
		f.logs.wantLines(t, 1, "info", "two routers", handlerName)
		wantEqual(t, "effects", f.store.committed(), []string{"second", "first", "second", "first"})
	})
	t.Run("one after the other is a restart, and silent", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		for _, uuid := range []string{"o1", "o2", "o1"} {
			mustHandle(t, f.wrap(writes(uuid)), f.message(uuid))
		}
		f.logs.wantLines(t, 0, "info")
		wantEqual(t, "effects", f.store.committed(), []string{"o1", "o2"})
	})
	t.Run("several deliveries at once in one router are usual, and silent", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		depth := 0
		var h message.HandlerFunc
		h = f.wrap(func(msg *message.Message) ([]*message.Message, error) {
			if depth++; depth < 3 {
				return h(f.message("o" + strconv.Itoa(depth)))
			}
			return nil, nil
		})
		mustHandle(t, h, f.message("o0"))
		f.logs.wantLines(t, 0, "info")
	})
}

func TestHandlersOfOneTopicHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	store := newMemory()
	in := inboxmw.MustNew(store, nil)
	for _, name := range []string{"a", "b", "a", "b"} {
		mustHandle(t, in.Middleware(writes(name)), deliverable(routed(t, name, ""), "o1"))
	}
	wantEqual(t, "effects", store.committed(), []string{"a", "b"})
}
