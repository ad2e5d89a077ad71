package outbox_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/components/requeuer"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestForwarderInTheSameRouter(t *testing.T) {
	t.Parallel()
	t.Run("it is left unprotected, which is logged, and forwards", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, postgresServer.open(t, "pgx", ""))
		outboxTopic := "outbox" + r.suffix
		r.drop(t, "watermill_"+outboxTopic)
		if err := makeTables(r.DB, outboxTopic); err != nil {
			t.Fatal(err)
		}
		r.works(t, enveloped(outboxTopic), "invoices", message.NewMessage("m1", payload("x")), message.NewMessage("m2", payload("y")))

		lines := &lines{}
		router := newRouter(t, lines)
		source, err := relaySource(r.DB)
		if err != nil {
			t.Fatal(err)
		}
		broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
		arrived := subscribe(t, broker, "invoices")
		router.AddPlugin(inboxmw.MustNew(r.store, nil).Plugin)
		if _, err := forwarder.NewForwarder(source, broker, lines, forwarder.Config{ForwarderTopic: outboxTopic, Router: router}); err != nil {
			t.Fatal(err)
		}
		stop := run(t, router)
		wantMessage(t, arrived, "m1", string(payload("x")))
		wantMessage(t, arrived, "m2", string(payload("y")))
		stop()
		lines.wantOne(t, "unprotected", "events_forwarder")
		if got := r.count(t, "SELECT consumer FROM "+"inbox_rig"+r.suffix); len(got) != 1 || got["handler"] != 1 {
			t.Errorf("the inbox has keys of %v", got)
		}
	})
}

func TestRequeuerInTheSameRouter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		config   *inboxmw.Config
		requeued int
	}{
		{"unprotected, as it is by default, it passes on a message that fails twice", nil, 2},
		{"protected on purpose, it loses the message that fails twice", &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"requeuer": {}}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, postgresServer.open(t, "pgx", ""))
			lines := &lines{}
			router := newRouter(t, lines)
			failed := gochannel.NewGoChannel(gochannel.Config{}, nil)
			back := &counter{}
			handled := make(chan struct{}, 2)
			router.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
				return func(msg *message.Message) ([]*message.Message, error) {
					defer func() { handled <- struct{}{} }()
					return next(msg)
				}
			})
			router.AddPlugin(inboxmw.MustNew(r.store, c.config).Plugin)
			if _, err := requeuer.NewRequeuer(requeuer.Config{
				Subscriber: failed, SubscribeTopic: "failed", Publisher: back, Router: router,
				GeneratePublishTopic: func(requeuer.GeneratePublishTopicParams) (string, error) { return "orders", nil },
			}, lines); err != nil {
				t.Fatal(err)
			}
			stop := run(t, router)
			for range 2 {
				if err := failed.Publish("failed", message.NewMessage("m1", payload("x"))); err != nil {
					t.Fatal(err)
				}
				<-handled
			}
			stop()
			if back.n != c.requeued {
				t.Errorf("it was requeued %d times, want %d", back.n, c.requeued)
			}
			if c.config == nil {
				lines.wantOne(t, "unprotected", "requeuer")
			}
		})
	}
}

func newRouter(t *testing.T, logger watermill.LoggerAdapter) *message.Router {
	t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, logger)
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// counter counts what is published, one after the other.
type counter struct{ n int }

func (c *counter) Publish(_ string, messages ...*message.Message) error {
	c.n += len(messages)
	return nil
}

func (c *counter) Close() error { return nil }

// lines are what was logged at the level info.
type lines struct {
	watermill.NopLogger
	mu   sync.Mutex
	info []string
}

func (l *lines) Info(msg string, fields watermill.LogFields) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.info = append(l.info, fmt.Sprint(msg, fields))
}

func (l *lines) With(watermill.LogFields) watermill.LoggerAdapter { return l }

// wantOne wants one line of the inbox about a handler that has these words, apart
// from the list at the start.
func (l *lines) wantOne(t *testing.T, words ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.info {
		all := strings.HasPrefix(line, "Inbox") && !strings.HasPrefix(line, "Inbox protects handlers")
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			found = append(found, line)
		}
	}
	if len(found) != 1 {
		t.Errorf("%d lines have %q: %q", len(found), words, l.info)
	}
}
