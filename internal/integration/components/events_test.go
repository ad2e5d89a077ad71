package components_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// Without the inbox, the first handler of the group would run and write again
// after the second one has failed.
func TestEventGroupIsAtomic(t *testing.T) {
	t.Parallel()
	s := openShop(t, inboxmw.Config{})
	publish := newEventBus(s, s.in.Publisher("events", s.sent))
	attempts := 0
	err := addGroup(s, handlerName, orders(publish), func(ctx context.Context, id string) error {
		if attempts++; attempts == 1 {
			return errHandler
		}
		return write(ctx, "bookings", id)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.router.AddPlugin(s.in.Plugin)
	s.start()
	s.deliver(&orderPlaced{ID: "o1"})
	s.wantOutcomes(inbox.Failed, inbox.Processed)
	s.deliver(&orderPlaced{ID: "o1"})
	s.wantOutcomes(inbox.Duplicate)
	s.stop()
	s.wantCount("orders", 1)
	s.wantCount("bookings", 1)
	s.wantCount(keys, 1)
	wantEqual(t, "different events", len(uuids(s.sent.all())), 1)
}

// On a topic of many events a handler gets all of them, and ignores most.
func TestIgnoredEvents(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		skip    func(*message.Message) bool
		outcome inbox.Outcome
		keys    int
	}{
		"take a key each": {outcome: inbox.Processed, keys: 1},
		"take none if Skip knows them": {
			skip:    func(msg *message.Message) bool { return marshaler.NameFromMessage(msg) != "orderPlaced" },
			outcome: inbox.Skipped,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, inboxmw.Config{Handler: inboxmw.Handler{Skip: want.skip}})
			if err := addToEventProcessor(s, handlerName, fails); err != nil {
				t.Fatal(err)
			}
			s.router.AddPlugin(s.in.Plugin)
			s.start()
			other, err := marshaler.Marshal(&orderAccepted{ID: "o1"})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.broker.Publish("orderPlaced", other); err != nil {
				t.Fatal(err)
			}
			s.wantOutcomes(want.outcome)
			s.stop()
			s.wantCount(keys, want.keys)
		})
	}
}
