package inboxmw_test

import (
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// instantAck is what Watermill's middleware of this name does.
func instantAck(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		msg.Ack()
		return h(msg)
	}
}

func TestEarlyAck(t *testing.T) {
	t.Parallel()
	same := func(h message.HandlerFunc) message.HandlerFunc { return h }
	for _, who := range []struct {
		name            string
		outside, inside message.HandlerMiddleware
	}{
		{name: "InstantAck", outside: instantAck, inside: same},
		{name: "the handler", outside: same, inside: instantAck},
	} {
		t.Run("by "+who.name+" does not keep the commit from going on", func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{})
			out := mustHandle(t, who.outside(f.wrap(who.inside(produces("m1")))), f.message("o1"))
			wantEqual(t, "effects", f.store.committed(), []string{"o1"})
			wantEqual(t, "messages", uuids(out), []string{"m1"})
			if e := f.watcher.last(t); !e.EarlyAck || e.Outcome != inbox.Processed {
				t.Errorf("the observers saw %+v", e)
			}
			f.logs.wantLines(t, 1, "error", "acked before the commit", handlerName, "o1")
		})
		for _, w := range ways() {
			if w.name == "it is a duplicate" || w.name == "it is a duplicate whose hook makes a mess" || w.name == "the message is discarded" {
				continue // these are done
			}
			if who.name == "the handler" && (w.end == nil && w.name != "the commit fails") {
				continue // the handler is not reached
			}
			t.Run("by "+who.name+" is logged as a loss when "+w.name, func(t *testing.T) {
				t.Parallel()
				f := setup(t, w.handler)
				if w.prepare != nil {
					w.prepare(f)
				}
				h := w.end
				if h == nil {
					h = writes("1")
				}
				undisturbed(who.outside(f.wrap(who.inside(h))), f.message("o1"))
				f.logs.wantLines(t, 1, "error", "is lost", handlerName, "o1")
				if e := f.watcher.last(t); !e.EarlyAck || e.Err == nil {
					t.Errorf("the observers saw %+v", e)
				}
			})
		}
	}
	t.Run("is logged as a loss when the message has no usable key", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		if _, err := instantAck(f.wrap(writes("1")))(f.message("")); !errors.Is(err, inbox.ErrInvalidKey) {
			t.Errorf("got %v", err)
		}
		if e := f.watcher.last(t); !e.EarlyAck {
			t.Errorf("the observers saw %+v", e)
		}
		f.logs.wantLines(t, 1, "error", "is lost", handlerName)
	})
}

func TestTransactionThatEndedUnderTheHandlerIsLoggedAsError(t *testing.T) {
	t.Parallel()
	t.Run("with what may have been committed", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		f.store.fail(inbox.OpCommit, inbox.ErrTxEnded)
		if _, err := f.wrap(writes("1"))(f.message("o1")); !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v", err)
		}
		f.logs.wantLines(t, 1, "error", "committed one by one", handlerName, "o1")
	})
	t.Run("and as a loss if the message was acked before", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		f.store.fail(inbox.OpCommit, inbox.ErrTxEnded)
		_, _ = instantAck(f.wrap(writes("1")))(f.message("o1"))
		f.logs.wantLines(t, 1, "error", "committed one by one", handlerName, "o1")
		f.logs.wantLines(t, 1, "error", "is lost", handlerName, "o1")
	})
	t.Run("but not if a handler was late to use it, and says so", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		_, err := f.wrap(func(*message.Message) ([]*message.Message, error) { return nil, inbox.ErrTxEnded })(f.message("o1"))
		if !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v", err)
		}
		f.logs.wantLines(t, 0, "error")
	})
}

func TestAckAfterTheCommitIsNoEarlyAck(t *testing.T) {
	t.Parallel()
	f := setup(t, inboxmw.Handler{})
	msg := f.message("o1")
	mustHandle(t, f.wrap(writes("1")), msg)
	msg.Ack()
	if e := f.watcher.last(t); e.EarlyAck {
		t.Errorf("the observers saw %+v", e)
	}
	f.logs.wantLines(t, 0, "error")
}
