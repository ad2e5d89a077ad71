package brokers_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

func testFlow(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	for range 2 {
		svc.start(t)
	}
	n := 1000
	if testing.Short() {
		n = 200
	}
	ids, orders := newOrders(n)
	repeated := 0
	for batch := range slices.Chunk(orders, 50) {
		s.publish(t, batch...)
		s.publish(t, batch[:10]...)
		repeated += 10
	}
	s.wantOnce(t, theConsumer, ids...)
	svc.watched.wantDuplicates(t, repeated)
}

func testFailures(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	seed := rand.Uint64() //nolint:gosec // faults, not secrets
	t.Logf("seed %d", seed)
	faults := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // faults, not secrets
	draw := make(chan int)
	go func() {
		for {
			select {
			case draw <- faults.IntN(4):
			case <-t.Context().Done():
				return
			}
		}
	}()
	svc.inside = func(*message.Message) error {
		select {
		case <-t.Context().Done():
			return nil
		case n := <-draw:
			switch n {
			case 0:
				return errors.New("at random")
			case 1:
				panic("at random")
			}
			return nil
		}
	}
	for range 2 {
		svc.start(t)
	}
	ids, orders := newOrders(40)
	s.publish(t, orders...)
	s.wantOnce(t, theConsumer, ids...)
	if svc.watched.count(inbox.Failed) == 0 {
		t.Error("no delivery has failed")
	}
}

func testMutation(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	const field = "note"
	svc.seen = func(msg *message.Message) string {
		return fmt.Sprintf("%s, %s, more %q, %s", msg.UUID, msg.Metadata.Get(field), msg.Metadata.Get("more"), msg.Payload)
	}
	attempts := newAttempts()
	svc.inside = func(msg *message.Message) error {
		if attempts.next(msg.UUID) > 2 {
			return nil
		}
		msg.UUID = "changed"
		msg.Metadata = message.Metadata{field: "changed", "more": "1"}
		msg.Payload = payload("changed")
		return errors.New("after all that")
	}
	svc.start(t)
	ids, orders := newOrders(10)
	for _, msg := range orders {
		msg.Metadata.Set(field, "as sent")
	}
	s.publish(t, orders...)
	s.wantOnce(t, theConsumer, ids...)

	for id, e := range s.db.committed(t, theConsumer) {
		if want := fmt.Sprintf("%s, as sent, more %q, %s", id, "", payload(id)); e.seen != want {
			t.Errorf("the delivery that succeeded saw %s, want %s", e.seen, want)
		}
	}
	if svc.watched.count(inbox.Failed) < 2*len(ids) {
		t.Errorf("%d deliveries failed, want two for each order", svc.watched.count(inbox.Failed))
	}
}
