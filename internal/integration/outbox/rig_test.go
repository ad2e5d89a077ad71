package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// rig is one protected handler with an effect, for single deliveries.
type rig struct {
	*database
	store   *inboxsql.Store
	effects string
}

func newRig(t *testing.T, d *database) *rig {
	t.Helper()
	r := &rig{database: d}
	r.store, r.effects = d.store(t, "rig")
	return r
}

// deliver delivers the message "consumed" to a handler of a router that has an
// effect and produces messages for topic, and returns what the inbox answers.
func (r *rig) deliver(t *testing.T, policy inboxmw.ProducedPolicy, topic string, produced ...*message.Message) error {
	t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
	answer := make(chan error, 1)
	router.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			out, err := next(msg)
			if len(out) > 0 {
				err = errors.Join(err, errors.New("the router gets messages to publish"))
			}
			answer <- err
			return nil, nil
		}
	})
	router.AddPlugin(inboxmw.MustNew(r.store, &inboxmw.Config{Handler: inboxmw.Handler{Produced: policy}}).Plugin)
	router.AddHandler("handler", "in", channel, topic, none{},
		inboxmw.TxHandler(func(ctx context.Context, tx *sql.Tx, _ *message.Message) ([]*message.Message, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+r.effects+" (id) VALUES ('effect')") //nolint:gosec // our own name
			return produced, err
		}))
	stop := run(t, router)
	defer stop()
	if err := channel.Publish("in", message.NewMessage("consumed", nil)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answer:
		return err
	case <-time.After(patience):
		t.Fatal("no answer")
		return nil
	}
}

// fails delivers, and wants an error that has each of these words, and no effect.
func (r *rig) fails(t *testing.T, policy inboxmw.ProducedPolicy, topic string, produced *message.Message, words ...string) {
	t.Helper()
	err := r.deliver(t, policy, topic, produced)
	if err == nil {
		t.Fatal("the delivery was processed")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %v", w, err)
		}
	}
	if n := len(r.count(t, "SELECT id FROM "+r.effects)); n != 0 {
		t.Error("the effect was committed")
	}
}

// works delivers, and wants the effect.
func (r *rig) works(t *testing.T, policy inboxmw.ProducedPolicy, topic string, produced ...*message.Message) {
	t.Helper()
	if err := r.deliver(t, policy, topic, produced...); err != nil {
		t.Fatal(err)
	}
	if n := r.count(t, "SELECT id FROM "+r.effects)["effect"]; n != 1 {
		t.Errorf("the effect was committed %d times", n)
	}
}

// run runs a router until stop is called.
func run(t *testing.T, router *message.Router) (stop func()) {
	t.Helper()
	ran := make(chan error, 1)
	go func() { ran <- router.Run(context.Background()) }()
	select {
	case <-router.Running():
	case err := <-ran:
		t.Fatalf("the router did not start: %v", err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(router.Close(), <-ran); err != nil {
			t.Errorf("close the router: %v", err)
		}
	}
}

// subscribe subscribes until the test ends.
func subscribe(t *testing.T, s message.Subscriber, topic string) <-chan *message.Message {
	t.Helper()
	messages, err := s.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return messages
}

// receive takes the next message, which the caller acks.
func receive(t *testing.T, messages <-chan *message.Message) *message.Message {
	t.Helper()
	select {
	case msg, ok := <-messages:
		if !ok {
			t.Fatal("the subscription is over")
		}
		return msg
	case <-time.After(patience):
		t.Fatal("no message came")
	}
	return nil
}

// wantMessage takes the next message, compares and acks it.
func wantMessage(t *testing.T, messages <-chan *message.Message, uuid, payload string) {
	t.Helper()
	msg := receive(t, messages)
	if msg.UUID != uuid || string(msg.Payload) != payload {
		t.Errorf("got %q with %q, want %q with %q", msg.UUID, msg.Payload, uuid, payload)
	}
	msg.Ack()
}
