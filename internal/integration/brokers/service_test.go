package brokers_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// The names of the service that most cases have, and of its handler.
const (
	billing      = "billing"
	writeInvoice = "write-invoice"
)

// group is the consumer group of a handler.
func group(service, handler string) string { return service + "_" + handler }

// consumer is under what name the effects of a handler are found.
func consumer(service, handler string) string { return service + "/" + handler }

// theConsumer is that of most cases.
var theConsumer = consumer(billing, writeInvoice) //nolint:gochecknoglobals // constant

// service is what its members have in common. Members are processes of it.
type service struct {
	scene     *scene
	name      string
	handlers  []string // that read the orders
	namespace string
	settings  inboxmw.Handler

	// The following may be set before a member starts.

	outside    func(*member) message.HandlerMiddleware   // around the inbox
	publishing func(message.Publisher) message.Publisher // wraps that of a handler
	protect    func(r *message.Router) error             // nil: with an inbox
	inside     func(*message.Message) error              // runs in the handler, after its effect
	until      <-chan struct{}                           // as of then the member gets no message; nil: it always does
	seen       func(*message.Message) string             // what the effect keeps
	identify   func(*message.Message) (string, error)    // nil: by the payload

	watched watched
}

func newService(s *scene) *service {
	return &service{scene: s, name: billing, handlers: []string{writeInvoice}}
}

// member is a running process of a service.
type member struct {
	close   func()    // as a deploy does; it waits for deliveries
	closing happening // the router has begun to close
	mute    happening // its publisher is closed

	got, began atomic.Int64 // messages that the router takes, and those of them that are in a middleware or were
}

// start starts a member. It runs until its close, or the end of the test.
func (s *service) start(t *testing.T) *member {
	t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{closing: newHappening(), mute: newHappening()}
	router.AddMiddleware(m.countBegun, s.watched.countDeliveries)
	if s.outside != nil {
		router.AddMiddleware(s.outside(m))
	}
	protect := s.protect
	if protect == nil {
		protect = inboxmw.MustNew(s.scene.db.store(s.namespace), &inboxmw.Config{Handler: s.settings, Observers: []inbox.Observer{&s.watched}}).Plugin
	}
	router.AddPlugin(protect)
	unsubscribed := make([]happening, 0, len(s.handlers))
	for _, name := range s.handlers {
		subscriber := s.scene.env.Subscriber(s.scene.orders, group(s.name, name))
		var publisher message.Publisher = muting{Publisher: s.scene.env.Publisher(), m: m}
		if s.publishing != nil {
			publisher = s.publishing(publisher)
		}
		ended := newHappening()
		unsubscribed = append(unsubscribed, ended)
		router.AddHandler(name, s.scene.orders, intake{Subscriber: subscriber, m: m, until: s.until, ended: ended}, s.scene.invoices, publisher, inboxmw.TxHandler(s.handle))
	}
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.Background()) }()
	select {
	case <-router.Running():
	case err := <-ended:
		t.Fatalf("the router did not start: %v", err)
	}
	m.close = sync.OnceFunc(func() {
		if err := errors.Join(router.Close(), <-ended); err != nil {
			t.Errorf("close a member: %v", err)
		}
		for _, u := range unsubscribed { // the router waits for the intake only
			select {
			case <-u.done:
			case <-time.After(patience):
				t.Error("a subscription of the member does not end")
			}
		}
	})
	t.Cleanup(m.close)
	return m
}

// handle has one effect and produces one message. It makes a new UUID each time it
// runs, as handlers do.
func (s *service) handle(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
	identify := orderID
	if s.identify != nil {
		identify = s.identify
	}
	id, err := identify(msg)
	if err != nil {
		return nil, err
	}
	seen := ""
	if s.seen != nil {
		seen = s.seen(msg)
	}
	name := consumer(s.name, message.HandlerNameFromCtx(ctx))
	if err := s.scene.db.apply(ctx, tx, name, id, seen); err != nil {
		return nil, err
	}
	if s.inside != nil {
		if err := s.inside(msg); err != nil {
			return nil, err
		}
	}
	produced := message.NewMessage(watermill.NewUUID(), payload(id))
	produced.Metadata.Set(fieldConsumer, name)
	produced.Metadata.Set(fieldOrder, id)
	return []*message.Message{produced}, nil
}

func (m *member) countBegun(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		m.began.Add(1)
		return next(msg)
	}
}

// intake hands the messages of a subscriber to the router, and ends when the router
// begins to close. Of itself the router would take messages while it closes, and
// then wait for its deliveries before it closes the publisher, or not: by chance.
type intake struct {
	message.Subscriber
	m     *member
	until <-chan struct{}
	ended happening // the subscription is over
}

func (s intake) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	messages, err := s.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.m.closing.happen)
	out := make(chan *message.Message)
	go func() {
		defer s.ended.happen()
		defer func() {
			for range messages { // the subscriber must not wait for someone to take them
			}
		}()
		defer close(out)
		for {
			select {
			case <-s.until:
				<-s.m.closing.done
				return
			case <-s.m.closing.done:
				return
			case msg, ok := <-messages:
				if !ok || !s.pass(msg, out) {
					return
				}
			}
		}
	}()
	return out, nil
}

// pass reports whether the subscription goes on. A message that was not taken is
// not acked, so the broker has it.
func (s intake) pass(msg *message.Message, out chan<- *message.Message) bool {
	s.m.got.Add(1)
	select {
	case out <- msg:
		return true
	case <-s.until:
	case <-s.m.closing.done:
	}
	s.m.got.Add(-1)
	<-s.m.closing.done
	return false
}

func (s intake) Close() error {
	s.m.closing.happen()
	return s.Subscriber.Close()
}

// muting tells when its router has closed it.
type muting struct {
	message.Publisher
	m *member
}

func (p muting) Close() error {
	defer p.m.mute.happen()
	return p.Publisher.Close()
}

// watched is what is seen of the deliveries of a service.
type watched struct {
	mu         sync.Mutex
	deliveries map[string]int // by UUID
	outcomes   map[inbox.Outcome]int
	failures   []error
}

func (w *watched) countDeliveries(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		w.mu.Lock()
		if w.deliveries == nil {
			w.deliveries = map[string]int{}
		}
		w.deliveries[msg.UUID]++
		w.mu.Unlock()
		return next(msg)
	}
}

// DeliveryStart implements [inbox.Observer].
func (*watched) DeliveryStart(ctx context.Context, _ inbox.Delivery) context.Context { return ctx }

// DeliveryEnd implements [inbox.Observer].
func (w *watched) DeliveryEnd(_ context.Context, e inbox.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcomes == nil {
		w.outcomes = map[inbox.Outcome]int{}
	}
	w.outcomes[e.Outcome]++
	if e.Err != nil {
		w.failures = append(w.failures, e.Err)
	}
}

// delivered returns how often a message was delivered.
func (w *watched) delivered(uuid string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deliveries[uuid]
}

func (w *watched) count(o inbox.Outcome) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcomes[o]
}

// wantDuplicates waits until so many duplicates were counted.
func (w *watched) wantDuplicates(t *testing.T, least int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d duplicates are counted", least), func() (bool, string) {
		n := w.count(inbox.Duplicate)
		return n >= least, strconv.Itoa(n)
	})
}

// failure returns the first error of a delivery, nil if there was none.
func (w *watched) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failures) == 0 {
		return nil
	}
	return w.failures[0]
}
