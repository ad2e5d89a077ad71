package soak_test

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox/internal/ledger"
)

// The troubles of a broker.
const (
	ackLost         = "ack lost"
	copiesAtOnce    = "two copies at once"
	canceled        = "context cancelled"
	mutated         = "nacked copy comes again as the handler left it"
	publishFails    = "publish fails"
	publishBreaks   = "publish fails after the first of two"
	publishUnheard  = "publish fails after all"
	deliveredLate   = "delivered again long after its ack"
	membersOfRouter = 8
	topicIn         = "orders"
	topicOut        = "invoices"
	outputsOfEach   = 2
)

// broker delivers each message until an ack of it is not lost, and until there were
// as many deliveries as wanted. Its order is by chance. What is published to it, it
// keeps.
type broker struct {
	chance *chance
	ids    []string

	mu        sync.Mutex
	queue     []parcel
	unsettled int // deliveries in the queue, or out
	delivered int
	wanted    int
	waiting   *sync.Cond // for the queue
	done      bool
	outputs   []ledger.Output
}

// parcel is a message to deliver, as the last handler left it.
type parcel struct {
	id  string
	msg *message.Message
}

func newBroker(c *chance, messages, deliveries int) *broker {
	b := &broker{chance: c, wanted: deliveries}
	b.waiting = sync.NewCond(&b.mu)
	for i := range messages {
		id := "m" + strconv.Itoa(i)
		b.ids = append(b.ids, id)
		b.put(parcel{id: id, msg: message.NewMessage(id, message.Payload("order "+id))})
	}
	return b
}

func (b *broker) put(p parcel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, p)
	b.unsettled++
	b.waiting.Signal()
}

// take waits for a message to deliver. There is none when all are settled.
func (b *broker) take() (parcel, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 && !b.done {
		b.waiting.Wait()
	}
	if b.done {
		return parcel{}, false
	}
	i := b.chance.below(min(len(b.queue), 1000)) // order is kept roughly
	p := b.queue[i]
	b.queue[i] = b.queue[0]
	b.queue = b.queue[1:]
	b.delivered++
	return p, true
}

// settled forgets a delivery. Deliveries that are still wanted are of messages that
// were settled before.
func (b *broker) settled() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unsettled--
	if b.unsettled > 0 {
		return
	}
	if b.delivered >= b.wanted {
		b.done = true
		b.waiting.Broadcast()
		return
	}
	for range min(b.wanted-b.delivered, membersOfRouter) {
		id := b.ids[b.chance.below(len(b.ids))]
		b.chance.saw(deliveredLate)
		b.queue = append(b.queue, parcel{id: id, msg: message.NewMessage(id, message.Payload("order "+id))})
		b.unsettled++
	}
	b.waiting.Broadcast()
}

// Subscribe implements [message.Subscriber]: it has several members, each with one
// message at a time.
func (b *broker) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	out := make(chan *message.Message)
	var members sync.WaitGroup
	for range membersOfRouter {
		members.Go(func() {
			for {
				p, more := b.take()
				if !more {
					return
				}
				b.deliver(ctx, out, p)
			}
		})
	}
	go func() {
		members.Wait()
		close(out)
	}()
	return out, nil
}

func (b *broker) deliver(ctx context.Context, out chan<- *message.Message, p parcel) {
	if b.chance.in(8, copiesAtOnce) {
		b.put(parcel{id: p.id, msg: p.msg.Copy()})
	}
	msg := p.msg.Copy()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	msg.SetContext(ctx)
	out <- msg
	if b.chance.in(100, canceled) {
		cancel()
	}
	select {
	case <-msg.Acked():
		if b.chance.in(2, ackLost) {
			b.put(p)
		}
	case <-msg.Nacked():
		if b.chance.in(2, mutated) {
			p.msg = msg.Copy()
		}
		b.put(p)
	}
	b.settled()
}

var errPublish = errors.New("the broker does not answer")

// Publish implements [message.Publisher].
func (b *broker) Publish(_ string, msgs ...*message.Message) error {
	if b.chance.in(30, publishFails) {
		return errPublish
	}
	breaks := b.chance.in(30, publishBreaks)
	for _, msg := range msgs {
		b.keep(ledger.Output{ID: msg.UUID, Of: msg.Metadata.Get("order")})
		if breaks {
			return errPublish
		}
	}
	if b.chance.in(30, publishUnheard) {
		return errPublish
	}
	return nil
}

func (b *broker) keep(o ledger.Output) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outputs = append(b.outputs, o)
}

// Close implements both.
func (b *broker) Close() error { return nil }
