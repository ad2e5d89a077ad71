package inboxmw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestTxHandler(t *testing.T) {
	t.Parallel()

	t.Run("has the transaction, the context and the message", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		msg := f.message("o1")
		out := mustHandle(t, f.wrap(inboxmw.TxHandler(func(ctx context.Context, tx *memoryTx, got *message.Message) ([]*message.Message, error) {
			if got != msg || ctx != got.Context() || inbox.MustTx[*memoryTx](ctx) != tx {
				t.Error("they are others")
			}
			tx.Write("1")
			return []*message.Message{message.NewMessage("m1", nil)}, nil
		})), msg)
		wantEqual(t, "effects", f.store.committed(), []string{"1"})
		wantEqual(t, "messages", uuids(out), []string{"m1"})
	})
	t.Run("takes any type that the store offers, interfaces too", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		mustHandle(t, f.wrap(inboxmw.TxHandler(func(_ context.Context, tx writer, _ *message.Message) ([]*message.Message, error) {
			tx.Write("1")
			return nil, nil
		})), f.message("o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"1"})
	})
	t.Run("without the inbox fails and does not run", func(t *testing.T) {
		t.Parallel()
		h := inboxmw.TxHandler(func(context.Context, *memoryTx, *message.Message) ([]*message.Message, error) {
			t.Error("it ran")
			return nil, nil
		})
		if _, err := h(deliverable(t.Context(), "o1")); !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("returns the error of its function as it is", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		_, err := f.wrap(inboxmw.TxHandler(func(context.Context, *memoryTx, *message.Message) ([]*message.Message, error) {
			return nil, errHandler
		}))(f.message("o1"))
		if err != errHandler { //nolint:errorlint // the very value is promised
			t.Errorf("got %v", err)
		}
	})
}

func TestTxConsumerHandler(t *testing.T) {
	t.Parallel()
	asHandler := func(h message.NoPublishHandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) { return nil, h(msg) }
	}

	t.Run("has the transaction, the context and the message", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		msg := f.message("o1")
		mustHandle(t, f.wrap(asHandler(inboxmw.TxConsumerHandler(func(ctx context.Context, tx *memoryTx, got *message.Message) error {
			if got != msg || ctx != got.Context() || inbox.MustTx[*memoryTx](ctx) != tx {
				t.Error("they are others")
			}
			tx.Write("1")
			return nil
		}))), msg)
		wantEqual(t, "effects", f.store.committed(), []string{"1"})
	})
	t.Run("without the inbox fails and does not run", func(t *testing.T) {
		t.Parallel()
		h := inboxmw.TxConsumerHandler(func(context.Context, *memoryTx, *message.Message) error {
			t.Error("it ran")
			return nil
		})
		if err := h(deliverable(t.Context(), "o1")); !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of a type that the store does not offer says what it offers", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		_, err := f.wrap(asHandler(inboxmw.TxConsumerHandler(func(context.Context, *fixture, *message.Message) error { return nil })))(f.message("o1"))
		if !errors.Is(err, inbox.ErrNoTx) {
			t.Errorf("got %v", err)
		}
		wantText(t, err, "*inboxmw_test.memoryTx")
	})
}

func TestBind(t *testing.T) {
	t.Parallel()
	type orm struct{ tx *memoryTx }
	bind := func(ctx context.Context) (context.Context, error) {
		tx, err := inbox.Tx[*memoryTx](ctx)
		if err != nil {
			return nil, err
		}
		return inbox.ContextWithTx(ctx, &orm{tx: tx}), nil
	}

	t.Run("adds to the handler's context, and what it adds dies with the delivery", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{Bind: bind})
		var ctx context.Context
		mustHandle(t, f.wrap(inboxmw.TxHandler(func(c context.Context, o *orm, _ *message.Message) ([]*message.Message, error) {
			ctx = c //nolint:fatcontext // looked at when it is over
			o.tx.Write("1")
			return nil, nil
		})), f.message("o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"1"})
		if _, err := inbox.Tx[*orm](ctx); !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("after the delivery: %v", err)
		}
	})
	t.Run("what it adds serves an outbox too", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{Bind: bind, Produced: inboxmw.Outbox(func(o *orm) (message.Publisher, error) {
			return &outboxPublisher{tx: o.tx}, nil
		})})
		mustHandle(t, f.wrap(produces("m1")), f.message("o1"))
		wantEqual(t, "effects", f.store.committed(), []string{"o1", "mails/m1"})
	})
	t.Run("its error fails the delivery before the handler runs", func(t *testing.T) {
		t.Parallel()
		errBind := errors.New("no session")
		f := setup(t, inboxmw.Handler{Bind: func(context.Context) (context.Context, error) { return nil, errBind }})
		_, err := f.wrap(func(*message.Message) ([]*message.Message, error) {
			t.Error("the handler ran")
			return nil, nil
		})(f.message("o1"))
		if !errors.Is(err, errBind) {
			t.Errorf("got %v", err)
		}
		wantText(t, err, "bind")
	})
}
