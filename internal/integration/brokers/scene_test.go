package brokers_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// usualHandOver is long enough for what has to be done within it, and short
// enough to be waited for after a deploy.
const usualHandOver = 3 * time.Second

// The groups of readers that are no service.
const (
	groupDownstream = "downstream"
	groupPoison     = "poison"
)

// scene is one case on one broker.
type scene struct {
	broker     Broker
	env        *Env
	db         *database
	orders     string // the topic that services subscribe to
	invoices   string // the topic that they publish to
	poison     string
	downstream *downstream
	producer   message.Publisher
}

// stage is how a case wants its scene. The zero value is what most want.
type stage struct {
	odd      string        // is added to the names of topics
	groups   []string      // that read the orders; nil: that of the service billing
	handOver time.Duration // zero: usualHandOver
}

func newScene(t *testing.T, b Broker, st stage) *scene {
	t.Helper()
	suffix := fmt.Sprintf("_%08x", rand.Uint32()) + st.odd //nolint:gosec // a name, not a secret
	s := &scene{broker: b, orders: "orders" + suffix, invoices: "invoices" + suffix, poison: "poison" + suffix}
	if st.groups == nil {
		st.groups = []string{group(billing, writeInvoice)}
	}
	if st.handOver == 0 {
		st.handOver = usualHandOver
	}
	s.env = b.Open(t, Setting{HandOver: st.handOver, Topics: []Topic{
		{Name: s.orders, Groups: st.groups},
		{Name: s.invoices, Groups: []string{groupDownstream}},
		{Name: s.poison, Groups: []string{groupPoison}},
	}})
	s.db = s.env.Database()
	s.downstream = listen(t, s.env.Subscriber(s.invoices, groupDownstream), s.invoices)
	s.producer = s.env.Publisher()
	t.Cleanup(func() {
		if err := s.producer.Close(); err != nil {
			t.Errorf("close the producer: %v", err)
		}
	})
	return s
}

// publish sends messages, again and again while the broker does not take them.
func (s *scene) publish(t *testing.T, messages ...*message.Message) {
	t.Helper()
	var failure error
	eventually(t, "the broker takes messages", func() (bool, string) {
		failure = s.producer.Publish(s.orders, messages...)
		return failure == nil, fmt.Sprint(failure)
	})
}

// newOrders returns n messages, and their ids.
func newOrders(n int) (ids []string, messages []*message.Message) {
	for i := range n {
		id := fmt.Sprintf("order-%04d", i)
		ids = append(ids, id)
		messages = append(messages, message.NewMessage(id, payload(id)))
	}
	return ids, messages
}

// wantOnce waits until each order has one effect and one produced message of the
// consumer, and fails if any has more. Where brokers and members may repeat
// messages, the repetition has the same UUID.
func (s *scene) wantOnce(t *testing.T, consumer string, ids ...string) {
	t.Helper()
	s.wantEffects(t, consumer, ids...)
	eventually(t, "each order of "+consumer+" has its produced message", func() (bool, string) {
		return covers(s.downstream.produced(consumer), ids)
	})
	s.wantNoMore(t, consumer, ids...)
}

// wantEffects waits until each order has an effect.
func (s *scene) wantEffects(t *testing.T, consumer string, ids ...string) {
	t.Helper()
	eventually(t, "each order of "+consumer+" has its effect", func() (bool, string) {
		return covers(s.db.committed(t, consumer), ids)
	})
}

// wantNoMore fails if anything of the consumer is doubled, or of no order.
func (s *scene) wantNoMore(t *testing.T, consumer string, ids ...string) {
	t.Helper()
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = true
	}
	for id, e := range s.db.committed(t, consumer) {
		if e.times != 1 || !known[id] {
			t.Errorf("%s has %d effects of %q, known %t", consumer, e.times, id, known[id])
		}
	}
	for id, n := range s.downstream.produced(consumer) {
		if n != 1 || !known[id] {
			t.Errorf("%s has produced %d different messages of %q, known %t", consumer, n, id, known[id])
		}
	}
}

// covers reports whether there is something of each order.
func covers[V any](have map[string]V, ids []string) (all bool, is string) {
	var missing []string
	for _, id := range ids {
		if _, ok := have[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return true, ""
	}
	return false, fmt.Sprintf("%d of %d are there, missing %s", len(have), len(ids), strings.Join(missing[:min(len(missing), 5)], ", "))
}
