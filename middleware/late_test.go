package inboxmw_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// committing is a memory that lets a test in between a handler and its commit.
type committing struct {
	*memory
	during func()
}

func (s *committing) Once(ctx context.Context, d inbox.Delivery, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	return s.memory.Once(ctx, d, func(ctx context.Context) (inbox.Effect, error) {
		effect, err := fn(ctx)
		s.during()
		return effect, err
	})
}

func TestWhatComesBetweenHandlerAndCommitIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	store := &committing{memory: f.store}
	in := inboxmw.MustNew(store, nil)
	bus := &published{}
	events := in.Publisher("events", bus)
	var left context.Context
	store.during = func() {
		m := message.NewMessageWithContext(left, "late", nil)
		for what, err := range map[string]error{
			"Publish":   events.Publish("events", m),
			"SetResult": inbox.SetResult(left, []byte("late")),
			"Discard":   inbox.Discard(left, errors.New("late")),
		} {
			if !errors.Is(err, inbox.ErrTxEnded) {
				t.Errorf("%s: got %v", what, err)
			}
		}
	}
	mustHandle(t, in.Middleware(func(msg *message.Message) ([]*message.Message, error) {
		left = msg.Context() //nolint:fatcontext // what a goroutine of the handler may keep
		return nil, nil
	}), f.message("o1"))
	if e, _ := f.store.entry(key("o1")); e.Discard != "" || e.Result != nil || e.Record != nil {
		t.Errorf("got %+v", e)
	}
	if got := bus.all(); len(got) > 0 {
		t.Errorf("%v were published", got)
	}
}

func TestMessageChangedByAHandlerWhoseOutputIsNotPublishedIsStillTheSame(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	msg := f.message("o1")
	out := mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
		inbox.MustTx[writer](msg.Context()).Write("invoice")
		msg.UUID = "m1"
		return []*message.Message{msg.Copy()}, nil
	}), msg)
	// The router fails to publish, and nacks; brokers send a copy of the object.
	again := msg.Copy()
	again.SetContext(f.ctx)
	replayed := mustHandle(t, f.wrap(writes("invoice")), again)
	if effects := f.store.committed(); len(effects) != 1 {
		t.Errorf("effects %v", effects)
	}
	if len(out) != 1 || len(replayed) != 1 || out[0].UUID != "m1" || replayed[0].UUID != "m1" {
		t.Errorf("got %v, then %v", uuids(out), uuids(replayed))
	}
}

func TestGoexitOfAFunctionOfTheSettingsIsNacked(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]inboxmw.Handler{
		"Key":  {Key: func(*message.Message) (string, error) { runtime.Goexit(); return "", nil }},
		"Skip": {Skip: func(*message.Message) bool { runtime.Goexit(); return false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, h)
			msg := f.message("o1")
			go func() { _, _ = f.wrap(writes("1"))(msg) }()
			select {
			case <-msg.Nacked():
			case <-time.After(30 * time.Second):
				t.Fatal("the message is stuck")
			}
		})
	}
}

func TestInboxTwiceWithACopyInBetween(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	copying := func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			other := msg.Copy()
			other.SetContext(msg.Context())
			return next(other)
		}
	}
	_, err := f.wrap(copying(f.wrap(writes("1"))))(f.message("o1"))
	if !errors.Is(err, inbox.ErrNested) || len(f.store.asked()) != 1 {
		t.Errorf("got %v; the store was asked %d times", err, len(f.store.asked()))
	}
}

func TestBindThatReturnsNoContextFailsTheDelivery(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{Bind: func(context.Context) (context.Context, error) { return nil, nil }}) //nolint:nilnil // the mistake
	_, err := f.wrap(writes("1"))(f.message("o1"))
	wantText(t, err, "bind", "nil context")
}

func TestOutboxReplacesAContextOfTheDeliveryThatIsOver(t *testing.T) {
	t.Parallel()
	var opened []*memoryTx
	f := setup(t, inboxmw.Handler{Produced: inboxmw.Outbox(outboxes(&opened))})
	mustHandle(t, f.wrap(func(msg *message.Message) ([]*message.Message, error) {
		over, cancel := context.WithCancel(msg.Context()) // as a Timeout inside does it
		m := message.NewMessageWithContext(over, "m1", nil)
		cancel()
		return []*message.Message{m}, nil
	}), f.message("o1"))
	if len(opened[0].outbox) != 1 {
		t.Errorf("%d messages are in the outbox", len(opened[0].outbox))
	}
}
