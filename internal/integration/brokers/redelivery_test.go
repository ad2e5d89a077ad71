package brokers_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

func testOverlap(t *testing.T, b Broker) {
	s := newScene(t, b, stage{handOver: time.Second})
	svc := newService(s)
	g := newGate(0)
	svc.inside = g.pass
	tries := newAttempts()
	svc.seen = func(msg *message.Message) string { return fmt.Sprintf("attempt %d", tries.next(msg.UUID)) }
	ids, orders := newOrders(10)
	// One alone: a member that waits with another for the database takes no more.
	s.publish(t, orders[:1]...)
	svc.start(t)
	g.held.await(t, "a delivery is in the handler")
	held, _ := g.order.Load().(string)
	svc.start(t)
	if s.env.HandOver != nil {
		s.env.HandOver()
	}
	eventually(t, "the order that is in a handler is delivered again", func() (bool, string) {
		n := svc.watched.delivered(held)
		return n > 1, strconv.Itoa(n)
	})
	// Where the time of the first delivery is over, another one may have committed.
	if s.db.committed(t, theConsumer)[held].seen == "attempt 1" {
		t.Error("the order was committed while its handler has not returned")
	}
	g.open.happen()
	s.publish(t, orders[1:]...)
	s.wantOnce(t, theConsumer, ids...)
}

func testInterrupt(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	for range 2 {
		svc.start(t)
	}
	ids, orders := newOrders(100)
	s.publish(t, orders[:50]...)
	eventually(t, "the members are at work", func() (bool, string) {
		n := len(s.db.committed(t, theConsumer))
		return n >= 10, strconv.Itoa(n)
	})
	s.env.Interrupt()
	s.publish(t, orders[50:]...)
	s.wantOnce(t, theConsumer, ids...)
}

func testRefusedAck(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	s.env.RefuseAcks(true)
	m := svc.start(t)
	ids, orders := newOrders(20)
	s.publish(t, orders...)
	s.wantOnce(t, theConsumer, ids...)
	m.close()
	s.env.RefuseAcks(false)
	before := svc.watched.count(inbox.Duplicate)
	svc.start(t)
	svc.watched.wantDuplicates(t, before+len(ids))
	s.wantOnce(t, theConsumer, ids...)
}
