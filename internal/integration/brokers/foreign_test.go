package brokers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func testForeign(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	s.env.Foreign(s.orders, string(payload("order")))
	svc.start(t)
	eventually(t, "the delivery has failed", func() (bool, string) { return svc.watched.failure() != nil, "" })
	err := svc.watched.failure()
	if !errors.Is(err, inbox.ErrInvalidKey) || !inboxmw.ToPoison(err) {
		t.Errorf("got %v, want a permanent %v", err, inbox.ErrInvalidKey)
	}
	for _, function := range []string{"Metadata", "CloudEvents", "Joined", "PayloadHash", "FirstOf"} {
		if !strings.Contains(err.Error(), function) {
			t.Errorf("no %s in %v", function, err)
		}
	}
	if n := len(s.db.committed(t, theConsumer)); n > 0 {
		t.Errorf("%d effects of a message without an id", n)
	}
}

func testNative(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	svc.settings.Key = inboxmw.FirstOf(inboxmw.UUID, s.env.Native)
	ids := make([]string, 0, 20)
	for i := range 20 {
		id := fmt.Sprintf("order-%04d", i)
		ids = append(ids, id)
		s.env.Foreign(s.orders, string(payload(id)))
	}
	svc.deployInMidWork(t)
	svc.start(t)
	s.wantOnce(t, theConsumer, ids...)
	svc.watched.wantDuplicates(t, 1)
}
