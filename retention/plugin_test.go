package retention_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/retention"
)

const patience = 30 * time.Second

// await fails the test if nothing comes.
func await[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("after %s: %s", patience, what)
	}
	return v
}

func newRouter(t *testing.T, logger watermill.LoggerAdapter) *message.Router {
	t.Helper()
	r, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, logger)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func addHandlers(t *testing.T, r *message.Router, names ...string) {
	t.Helper()
	channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
	for _, name := range names {
		r.AddConsumerHandler(name, "orders", channel, func(*message.Message) error { return nil })
	}
}

func TestPluginRunsWithTheRouter(t *testing.T) {
	t.Parallel()
	f := &fake{called: make(chan struct{}), goOn: make(chan struct{})}
	c := retention.MustNew(f, &retention.Config{Interval: time.Millisecond})
	r := newRouter(t, nil)
	r.AddPlugin(c.Plugin)
	addHandlers(t, r, "invoices", "mails")
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background()) }()
	await(t, f.called, "the cleaner does not run with the router")

	// The batch is held: the router closes nevertheless.
	if err := r.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := await(t, ended, "the router does not end"); err != nil {
		t.Errorf("run: %v", err)
	}
	close(f.goOn)
	// The cleaner ends, so the fake is free and stays so: its mutex is, at least.
	f.mu.Lock()
	defer f.mu.Unlock()
}

func TestPluginEndsWithTheLastSubscription(t *testing.T) {
	t.Parallel()
	s := &stopping{stopped: make(chan struct{}), began: make(chan struct{}, 1)}
	c := retention.MustNew(s, &retention.Config{Interval: time.Millisecond})
	r := newRouter(t, nil)
	r.AddPlugin(c.Plugin)
	addHandlers(t, r, "invoices", "mails")
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background()) }()
	await(t, s.began, "the cleaner does not run with the router")
	select {
	case <-s.stopped:
		t.Error("it was stopped while the router runs")
	default:
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	await(t, s.stopped, "the cleaner was not stopped")
	if err := await(t, ended, "the router does not end"); err != nil {
		t.Error(err)
	}
}

// stopping is in a batch until it is stopped.
type stopping struct {
	fake
	began, stopped chan struct{}
	once           sync.Once
}

func (s *stopping) Sweep(ctx context.Context, _ inbox.Batch) (inbox.Swept, error) {
	s.once.Do(func() { close(s.began) })
	<-ctx.Done()
	close(s.stopped)
	return inbox.Swept{}, ctx.Err()
}

func TestPluginTakesTheLoggerOfTheRouter(t *testing.T) {
	t.Parallel()
	logger := watermill.NewCaptureLogger()
	f := &fake{keys: 3}
	c := retention.MustNew(f, nil)
	if err := c.Plugin(newRouter(t, logger)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.fails = func(int, inbox.Batch) error { return context.DeadlineExceeded }
	if _, err := c.Sweep(t.Context()); err == nil {
		t.Fatal("it does not fail")
	}
	lines := logger.Captured()
	removed := func(m watermill.CapturedMessage) bool { return m.Fields["removed"] == 3 }
	if !slices.ContainsFunc(lines[watermill.DebugLogLevel], removed) {
		t.Errorf("no debug line says how many keys were removed: %+v", lines)
	}
	if !logger.HasError(context.DeadlineExceeded) {
		t.Errorf("no error line: %+v", lines)
	}
}

func TestARouterThatDoesNotStartHasNoCleaner(t *testing.T) {
	t.Parallel()
	f := &fake{}
	c := retention.MustNew(f, &retention.Config{Interval: time.Nanosecond})
	r := newRouter(t, nil)
	refused := func(*message.Router) error { return context.Canceled }
	r.AddPlugin(c.Plugin, refused)
	addHandlers(t, r, "invoices")
	if err := r.Run(context.Background()); err == nil {
		t.Fatal("the router runs")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.batches) != 0 {
		t.Errorf("got %d batches", len(f.batches))
	}
}
