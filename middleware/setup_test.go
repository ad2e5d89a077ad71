package inboxmw_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// The handler of most tests, as a router names it, and its topics.
const (
	handlerName    = "invoices"
	subscribeTopic = "orders"
	publishTopic   = "mails"
)

// fixture is an inbox on a store without a database, with all that it tells.
type fixture struct {
	store   *memory
	inbox   *inboxmw.Inbox
	watcher *watcher
	logs    *logs
	ctx     context.Context //nolint:containedctx // that a router gives a message of the handler
}

// setup makes a fixture with these settings for all handlers.
func setup(tb testing.TB, h inboxmw.Handler) *fixture {
	tb.Helper()
	f := &fixture{store: newMemory(), watcher: &watcher{}, logs: &logs{}, ctx: routed(tb, handlerName, publishTopic)}
	f.inbox = inboxmw.MustNew(f.store, &inboxmw.Config{Handler: h, Observers: []inbox.Observer{f.watcher}, Logger: f.logs})
	return f
}

// message returns a message as the router delivers it.
func (f *fixture) message(uuid string) *message.Message {
	return deliverable(f.ctx, uuid)
}

// wrap puts the inbox around a handler.
func (f *fixture) wrap(h message.HandlerFunc) message.HandlerFunc { return f.inbox.Middleware(h) }

func deliverable(ctx context.Context, uuid string) *message.Message {
	msg := message.NewMessageWithContext(ctx, uuid, []byte(`{"order":"`+uuid+`"}`))
	msg.Metadata.Set("name", "OrderPlaced")
	return msg
}

func key(uuid string) inbox.Key { return inbox.Key{Consumer: handlerName, MessageID: uuid} }

// routed returns the context that a router gives the messages of a handler. An
// empty topic is that of a handler that publishes to none.
func routed(tb testing.TB, handler, topic string) context.Context {
	tb.Helper()
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	got := make(chan context.Context, 1)
	look := func(msg *message.Message) error { //nolint:unparam // a handler has an error
		got <- msg.Context()
		return nil
	}
	if topic == "" {
		router.AddConsumerHandler(handler, subscribeTopic, oneMessage{}, look)
	} else {
		router.AddHandler(handler, subscribeTopic, oneMessage{}, topic, &published{}, func(msg *message.Message) ([]*message.Message, error) { return nil, look(msg) })
	}
	if err := router.Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return <-got
}

// oneMessage is a subscriber that has one message, and then no more.
type oneMessage struct{}

func (oneMessage) Subscribe(context.Context, string) (<-chan *message.Message, error) {
	messages := make(chan *message.Message, 1)
	messages <- message.NewMessage("1", nil)
	close(messages)
	return messages, nil
}

func (oneMessage) Close() error { return nil }

// published is a publisher that keeps what it gets.
type published struct {
	mu       sync.Mutex
	fails    error
	topics   []string
	messages []*message.Message
	closed   int
}

func (p *published) Publish(topic string, messages ...*message.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return p.fails
	}
	for range messages {
		p.topics = append(p.topics, topic)
	}
	p.messages = append(p.messages, messages...)
	return nil
}

func (p *published) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
	return nil
}

func (p *published) failWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = err
}

// all returns the messages as topic/uuid.
func (p *published) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]string, 0, len(p.messages))
	for i, m := range p.messages {
		all = append(all, p.topics[i]+"/"+m.UUID)
	}
	return all
}

// watcher is an observer that keeps what it sees.
type watcher struct {
	mu     sync.Mutex
	name   string
	starts []inbox.Delivery
	ends   []inbox.Event
	order  *[]string // of several watchers in one goroutine; nil: not kept
}

type watcherKey struct{ name string }

func (w *watcher) DeliveryStart(ctx context.Context, d inbox.Delivery) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts = append(w.starts, d)
	if w.order != nil {
		*w.order = append(*w.order, "start "+w.name)
	}
	return context.WithValue(ctx, watcherKey{name: w.name}, true)
}

func (w *watcher) DeliveryEnd(ctx context.Context, e inbox.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, e)
	if w.order != nil {
		*w.order = append(*w.order, fmt.Sprintf("end %s, own context %t", w.name, ctx.Value(watcherKey{name: w.name}) != nil))
	}
}

// outcomes returns those of all deliveries, and fails unless each start has an end.
func (w *watcher) outcomes(tb testing.TB) []inbox.Outcome {
	tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.starts) != len(w.ends) {
		tb.Errorf("%d deliveries were started and %d ended", len(w.starts), len(w.ends))
	}
	all := make([]inbox.Outcome, 0, len(w.ends))
	for _, e := range w.ends {
		all = append(all, e.Outcome)
	}
	return all
}

// last returns the end of the last delivery.
func (w *watcher) last(tb testing.TB) inbox.Event {
	tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.starts) != len(w.ends) || len(w.ends) == 0 {
		tb.Fatalf("%d deliveries were started and %d ended", len(w.starts), len(w.ends))
	}
	return w.ends[len(w.ends)-1]
}

// logs keeps what is logged, one line each: level, text, error, fields.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) add(level, msg string, err error, fields watermill.LogFields) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s %s err=%v %v", level, msg, err, fields))
}

func (l *logs) Error(msg string, err error, fields watermill.LogFields) {
	l.add("error", msg, err, fields)
}
func (l *logs) Info(msg string, fields watermill.LogFields)      { l.add("info", msg, nil, fields) }
func (l *logs) Debug(msg string, fields watermill.LogFields)     { l.add("debug", msg, nil, fields) }
func (l *logs) Trace(msg string, fields watermill.LogFields)     { l.add("trace", msg, nil, fields) }
func (l *logs) With(watermill.LogFields) watermill.LoggerAdapter { return l }

// having returns the lines that begin with the level and contain each text.
func (l *logs) having(level string, texts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.HasPrefix(line, level+" ") && !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(line, s) }) {
			found = append(found, line)
		}
	}
	return found
}

// wantLines fails unless that many lines were logged.
func (l *logs) wantLines(tb testing.TB, n int, level string, texts ...string) {
	tb.Helper()
	if got := l.having(level, texts...); len(got) != n {
		l.mu.Lock()
		defer l.mu.Unlock()
		tb.Errorf("%d lines at level %s have %q, want %d; all lines are\n%s", len(got), level, texts, n, strings.Join(l.lines, "\n"))
	}
}

// writes is a handler with one effect.
func writes(effect string) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		tx, err := inbox.Tx[*memoryTx](msg.Context())
		if err != nil {
			return nil, err
		}
		tx.Write(effect)
		return nil, nil
	}
}

// produces is a handler with one effect that returns messages of these UUIDs.
func produces(uuids ...string) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		inbox.MustTx[*memoryTx](msg.Context()).Write(msg.UUID)
		out := make([]*message.Message, 0, len(uuids))
		for _, uuid := range uuids {
			m := message.NewMessageWithContext(msg.Context(), uuid, []byte("mail "+uuid))
			m.Metadata.Set("to", uuid)
			out = append(out, m)
		}
		return out, nil
	}
}

// mustHandle delivers msg and returns what goes to the router.
func mustHandle(tb testing.TB, h message.HandlerFunc, msg *message.Message) []*message.Message {
	tb.Helper()
	out, err := h(msg)
	if err != nil {
		tb.Fatalf("message %s: %v", msg.UUID, err)
	}
	return out
}

// wantText fails unless err is there and says each text.
func wantText(tb testing.TB, err error, texts ...string) {
	tb.Helper()
	if err == nil {
		tb.Fatal("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("error %q does not say %q", err, text)
		}
	}
}

// wantEqual fails unless got is want.
func wantEqual[T any](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != w {
		tb.Errorf("%s: got %s, want %s", what, g, w)
	}
}

func uuids(messages []*message.Message) []string {
	all := make([]string, 0, len(messages))
	for _, m := range messages {
		all = append(all, m.UUID)
	}
	return all
}
