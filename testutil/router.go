package testutil

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

const (
	topicIn  = "orders"
	topicOut = "invoices"
)

// rig is a router between a broker that redelivers what was not acked, and one
// that can refuse to take messages. The case plays both.
type rig struct {
	t      *testing.T
	router *message.Router
	source *source
	sink   *sink
	passed chan passed
}

// passed is how a delivery passed the outermost middleware.
type passed struct {
	err      error
	panicked any
	restored bool // the message left with the context that it came with
}

// newRig makes a router with middlewares, the first one outermost.
func newRig(t *testing.T, middlewares ...message.HandlerMiddleware) *rig {
	t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, router: router, source: newSource(t), sink: &sink{}, passed: make(chan passed, 64)}
	router.AddMiddleware(r.watch)
	router.AddMiddleware(middlewares...)
	return r
}

// watch sees what passes the outermost middleware.
func (r *rig) watch(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) (out []*message.Message, err error) {
		ctx := msg.Context()
		defer func() {
			panicked := recover()
			r.passed <- passed{err: err, panicked: panicked, restored: msg.Context() == ctx}
			if panicked != nil {
				panic(panicked)
			}
		}()
		return next(msg)
	}
}

// handle adds a handler.
func (r *rig) handle(name string, h message.HandlerFunc) {
	r.router.AddHandler(name, topicIn, r.source, topicOut, r.sink, h)
}

// run starts the router. It is closed when the test ends.
func (r *rig) run() {
	r.t.Helper()
	ended := async(func() error { return r.router.Run(context.Background()) })
	r.t.Cleanup(func() {
		if err := r.router.Close(); err != nil {
			r.t.Errorf("close the router: %v", err)
		}
		if err := await(r.t, ended, "the end of the router"); err != nil {
			r.t.Errorf("the router: %v", err)
		}
	})
	await(r.t, r.router.Running(), "the start of the router")
}

// settled is what became of a message.
type settled struct {
	passed
	acked bool
}

// deliver hands msg to the one handler there is, and waits until it is settled.
func (r *rig) deliver(msg *message.Message) settled {
	r.t.Helper()
	return r.deliverAll(msg)[0]
}

// deliverAll hands msg to each handler, copies of it to all but the first.
func (r *rig) deliverAll(msg *message.Message) []settled {
	r.t.Helper()
	out := make([]settled, 0, len(r.source.subscribers))
	for i, ch := range r.source.subscribers {
		if i > 0 {
			msg = msg.Copy()
		}
		r.source.send(ch, msg)
		var s settled
		select {
		case <-msg.Acked():
			s.acked = true
		case <-msg.Nacked():
		case <-patienceOver(r.t):
			r.t.Fatalf("handler %d: the message was neither acked nor nacked", i)
		}
		s.passed = await(r.t, r.passed, "the handler's end")
		out = append(out, s)
	}
	return out
}

func patienceOver(t *testing.T) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx.Done()
}

// mustAck fails the test unless the message was acked without an error.
func (s settled) mustAck(t *testing.T) {
	t.Helper()
	if !s.acked || s.err != nil || s.panicked != nil {
		t.Fatalf("got acked %v, error %v, panic %v, want an ack", s.acked, s.err, s.panicked)
	}
}

// mustNack fails the test unless the message was nacked for target.
func (s settled) mustNack(t *testing.T, target error) {
	t.Helper()
	if s.acked || !errors.Is(s.err, target) {
		t.Fatalf("got acked %v, error %v, panic %v, want a nack for %q", s.acked, s.err, s.panicked, target)
	}
}

// source is a subscriber in memory. When it is closed it cancels the contexts of
// its messages, as brokers' subscribers do.
type source struct {
	ctx         context.Context //nolint:containedctx // that of the messages
	close       context.CancelFunc
	subscribers []chan *message.Message // complete before the router runs
}

func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{}
	s.ctx, s.close = context.WithCancel(t.Context())
	t.Cleanup(s.close)
	return s
}

// Subscribe implements [message.Subscriber].
func (s *source) Subscribe(context.Context, string) (<-chan *message.Message, error) {
	in, out := make(chan *message.Message), make(chan *message.Message)
	s.subscribers = append(s.subscribers, in)
	go func() {
		defer close(out)
		for {
			select {
			case msg := <-in:
				out <- msg
			case <-s.ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// Close implements [message.Subscriber].
func (s *source) Close() error {
	s.close()
	return nil
}

func (s *source) send(ch chan<- *message.Message, msg *message.Message) {
	msg.SetContext(s.ctx)
	select {
	case ch <- msg:
	case <-s.ctx.Done():
	}
}

// sink is a publisher in memory.
type sink struct {
	mu        sync.Mutex
	refuse    []func() error            // one for each publishing to come that fails
	inspect   func(ctx context.Context) // sees the context of each message
	published []published
}

// published is a message as the broker got it.
type published struct {
	topic string
	msg   *message.Message
}

var errBroker = errors.New("the broker is away")

// Publish implements [message.Publisher].
func (s *sink) Publish(topic string, msgs ...*message.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refuse) > 0 {
		refuse := s.refuse[0]
		s.refuse = s.refuse[1:]
		return refuse()
	}
	for _, msg := range msgs {
		if s.inspect != nil {
			s.inspect(msg.Context())
		}
		s.published = append(s.published, published{topic: topic, msg: msg.Copy()})
	}
	return nil
}

// Close implements [message.Publisher].
func (s *sink) Close() error { return nil }

// taken returns what was published since it was last asked.
func (s *sink) taken() []published {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.published
	s.published = nil
	return out
}
