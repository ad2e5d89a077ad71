package brokers_test

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
)

func testDeploy(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	ids, orders := newOrders(40)
	s.publish(t, orders...)
	const deploys = 3
	for range deploys {
		svc.deployInMidWork(t)
	}
	svc.start(t)
	s.wantOnce(t, theConsumer, ids...)
	svc.watched.wantDuplicates(t, deploys)
}

// testNaive is the negative control of testDeploy: were this to lose nothing,
// that would show nothing.
func testNaive(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	svc.protect = naiveInbox(t, s.db)
	ids, orders := newOrders(20)
	s.publish(t, orders...)
	held := svc.deployInMidWork(t)
	before := svc.watched.delivered(held)
	m := svc.start(t)
	s.wantEffects(t, theConsumer, ids...)
	eventually(t, "the order that was in the handler comes again", func() (bool, string) {
		n := svc.watched.delivered(held)
		return n > before, strconv.Itoa(n)
	})
	// A later order shows that downstream has all that there is.
	s.publish(t, message.NewMessage("last", payload("last")))
	eventually(t, "the last order has its produced message", func() (bool, string) {
		return covers(s.downstream.produced(theConsumer), []string{"last"})
	})
	m.close()
	for id, e := range s.db.committed(t, theConsumer) {
		if e.times != 1 {
			t.Errorf("%s has %d effects", id, e.times)
		}
	}
	if _, ok := s.downstream.produced(theConsumer)[held]; ok {
		t.Errorf("the naive inbox has lost nothing: %s has its produced message", held)
	}
}

func testPublish(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	svc.publishing = failing(newAttempts())
	svc.start(t)
	ids, orders := newOrders(20)
	s.publish(t, orders...)
	s.wantOnce(t, theConsumer, ids...)
	svc.watched.wantDuplicates(t, 2*len(ids))
}

// failing fails to publish each message twice.
func failing(tries *attempts) func(message.Publisher) message.Publisher {
	return func(p message.Publisher) message.Publisher {
		return failingPublisher{Publisher: p, fails: func(msg *message.Message) bool { return tries.next(msg.UUID) <= 2 }}
	}
}

func testCrash(t *testing.T, b Broker) {
	s := newScene(t, b, stage{})
	svc := newService(s)
	ids, orders := newOrders(20)
	s.publish(t, orders...)
	const crashes = 3
	for range crashes {
		crash := newHappening()
		var mu sync.Mutex
		passed := 0
		svc.publishing = func(p message.Publisher) message.Publisher {
			return failingPublisher{Publisher: p, fails: func(*message.Message) bool {
				mu.Lock()
				defer mu.Unlock()
				passed++
				if passed > 3 {
					crash.happen()
				}
				return passed > 3 // as of then it is dead
			}}
		}
		m := svc.start(t)
		crash.await(t, "the member crashes after a commit")
		m.close()
	}
	svc.publishing = nil
	svc.start(t)
	s.wantOnce(t, theConsumer, ids...)
	svc.watched.wantDuplicates(t, crashes)
}

// failingPublisher publishes unless fails says so.
type failingPublisher struct {
	message.Publisher
	fails func(*message.Message) bool
}

func (p failingPublisher) Publish(topic string, messages ...*message.Message) error {
	if slices.ContainsFunc(messages, p.fails) {
		return errors.New("on purpose")
	}
	return p.Publisher.Publish(topic, messages...)
}

// attempts counts by name.
type attempts struct {
	mu sync.Mutex
	n  map[string]int
}

func newAttempts() *attempts { return &attempts{n: map[string]int{}} }

// next returns which attempt this is: the first is 1.
func (a *attempts) next(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n[name]++
	return a.n[name]
}
