package inboxmw_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestKeyIsMadeFromTheMessageAsDelivered(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{
		Bind:   bindNothing,
		Inside: []message.HandlerMiddleware{mutating},
	})
	mustHandle(t, f.wrap(writes("1")), f.message("o1"))
	wantEqual(t, "key", f.store.asked()[0].Key, key("o1"))
	wantEqual(t, "event type", f.store.asked()[0].EventType, "OrderPlaced")
}

func TestEventTypeIsMadeBeforeTheHandlerRuns(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{
		EventType: func(msg *message.Message) string { return "type of " + string(msg.Payload) },
		Inside:    []message.HandlerMiddleware{mutating},
	})
	mustHandle(t, f.wrap(writes("1")), f.message("o1"))
	wantEqual(t, "event type", f.store.asked()[0].EventType, `type of {"order":"o1"}`)
}

func TestSkipIsAskedBeforeTheKeyIsMade(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{Skip: func(msg *message.Message) bool { return msg.UUID == "" }})
	ran := false
	mustHandle(t, f.wrap(func(*message.Message) ([]*message.Message, error) {
		ran = true
		return nil, nil
	}), f.message(""))
	if !ran {
		t.Error("the handler did not run")
	}
}

func TestMessageWithoutAUsableKeyFailsBeforeTheStoreIsAsked(t *testing.T) {
	t.Parallel()
	errMalformed := errors.New("the field has two values")
	malformed := func(*message.Message) (string, error) { return "", errMalformed }
	routerless := func(m *message.Message) *message.Message {
		m.SetContext(t.Context())
		return m
	}
	as := func(m *message.Message) *message.Message { return m }
	for _, c := range []struct {
		name    string
		handler inboxmw.Handler
		uuid    string
		as      func(*message.Message) *message.Message
		says    []string
		is      error
	}{
		{name: "the key function fails", handler: inboxmw.Handler{Key: malformed}, uuid: "1", as: as, says: []string{errMalformed.Error(), handlerName}, is: errMalformed},
		{name: "the source function fails", handler: inboxmw.Handler{Source: malformed}, uuid: "1", as: as, says: []string{errMalformed.Error(), handlerName}, is: errMalformed},
		{name: "an empty UUID", uuid: "", as: as, says: []string{"message id is empty", "Metadata", "CloudEvents", "Joined", "PayloadHash", "FirstOf"}},
		{name: "a message that lacks the part", handler: inboxmw.Handler{Key: inboxmw.Metadata("id")}, uuid: "1", as: as, says: []string{"message id is empty"}},
		{name: "no router and no name for the consumer", uuid: "1", as: routerless, says: []string{"consumer is empty", "router", "name the consumer"}},
		{name: "an id that is too long", uuid: strings.Repeat("x", inbox.MaxMessageID+1), as: as, says: []string{"Hashed"}},
		{name: "an id that PostgreSQL cannot hold", uuid: "a\x00b", as: as, says: []string{"Hashed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, c.handler)
			ran := false
			_, err := f.wrap(func(*message.Message) ([]*message.Message, error) {
				ran = true
				return nil, nil
			})(c.as(f.message(c.uuid)))
			wantText(t, err, c.says...)
			if !errors.Is(err, inbox.ErrInvalidKey) || inbox.Permanent(err) == strings.HasPrefix(c.says[0], "consumer") {
				t.Errorf("%v, permanent %v", err, inbox.Permanent(err))
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v does not wrap %v", err, c.is)
			}
			if ran || len(f.store.asked()) > 0 {
				t.Errorf("the handler ran: %t; the store was asked for %v", ran, f.store.asked())
			}
			if e := f.watcher.last(t); e.Outcome != inbox.Failed || !errors.Is(e.Err, inbox.ErrInvalidKey) {
				t.Errorf("the observers saw %+v", e)
			}
		})
	}
}

func TestPanicOfAFunctionOfTheUserIsSeenAsAFailedDelivery(t *testing.T) {
	t.Parallel()
	part := func(*message.Message) (string, error) { panic("x") }
	for name, h := range map[string]inboxmw.Handler{
		"Key":       {Key: part},
		"Source":    {Source: part},
		"EventType": {EventType: func(*message.Message) string { panic("x") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, h)
			msg := f.message("o1")
			if got := undisturbed(f.wrap(writes("1")), msg); got != "x" {
				t.Errorf("got %v", got)
			}
			wantEqual(t, "outcomes", f.watcher.outcomes(t), []inbox.Outcome{inbox.Failed})
			wantEqual(t, "message", settled(msg), "neither")
			if f.watcher.last(t).Err == nil || len(f.store.asked()) > 0 {
				t.Errorf("the observers saw %+v; the store was asked for %v", f.watcher.last(t), f.store.asked())
			}
		})
	}
}

func TestWithoutARouterANamedConsumerWillDo(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	h := f.inbox.With(inboxmw.Handler{Consumer: "billing"})(writes("1"))
	mustHandle(t, h, deliverable(t.Context(), "o1"))
	mustHandle(t, h, deliverable(t.Context(), "o1"))
	wantEqual(t, "effects", f.store.committed(), []string{"1"})
	wantEqual(t, "key", f.store.asked()[0].Key, inbox.Key{Consumer: "billing", MessageID: "o1"})
}

// mutating changes all of a message that can be changed, before the handler.
func mutating(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		mutate(msg)
		return h(msg)
	}
}

// mutate changes all of a message that can be put back.
func mutate(msg *message.Message) {
	msg.UUID = "changed"
	msg.Metadata.Set("name", "Changed")
	msg.Metadata.Set("added", "1")
	msg.Payload = []byte("changed")
}
