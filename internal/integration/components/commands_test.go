package components_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// fails is a handler that has an effect before it fails.
func fails(ctx context.Context, id string) error {
	if err := write(ctx, "orders", id); err != nil {
		return err
	}
	return errHandler
}

// A processor that acks errors hides them from the inbox, which commits.
func TestAckCommandHandlingErrorsCommitsWhatWasWrittenBeforeTheError(t *testing.T) {
	t.Parallel()
	s := openShop(t, inboxmw.Config{})
	acking(s, cqrs.CommandProcessorConfig{}, fails)
	s.deliver(&placeOrder{ID: "o1"})
	s.wantOutcomes(inbox.Processed)
	s.stop()
	s.wantCount("orders", 1)
	s.wantCount(keys, 1)
}

func TestAckCommandHandlingErrorsWithDiscardUndoesTheEffectsAndKeepsTheKey(t *testing.T) {
	t.Parallel()
	s := openShop(t, inboxmw.Config{})
	acking(s, cqrs.CommandProcessorConfig{}, func(ctx context.Context, id string) error {
		if err := fails(ctx, id); err != nil {
			return inbox.Discard(ctx, err)
		}
		return nil
	})
	s.wantDiscard()
}

// OnHandle discards for all handlers of a processor, in one place.
func TestAckCommandHandlingErrorsWithDiscardInOnHandle(t *testing.T) {
	t.Parallel()
	s := openShop(t, inboxmw.Config{})
	acking(s, cqrs.CommandProcessorConfig{OnHandle: func(p cqrs.CommandProcessorOnHandleParams) error {
		ctx := p.Message.Context()
		if err := p.Handler.Handle(ctx, p.Command); err != nil {
			return inbox.Discard(ctx, err)
		}
		return nil
	}}, fails)
	s.wantDiscard()
}

// What was published before the error would be lost: the message is nacked, and
// as the error is permanent, [inboxmw.ToPoison] lets it into a poison queue.
func TestDiscardAfterAnEventWasPublishedFails(t *testing.T) {
	t.Parallel()
	s := openShop(t, inboxmw.Config{})
	errs := make(chan error, 1)
	s.router.AddMiddleware(passes(errs))
	publish := newEventBus(s, s.in.Publisher("events", s.sent))
	acking(s, cqrs.CommandProcessorConfig{}, func(ctx context.Context, id string) error {
		return errors.Join(publish(ctx, id), inbox.Discard(ctx, errHandler))
	})
	s.deliver(&placeOrder{ID: "o1"})
	if err := await(t, errs, "the delivery"); !errors.Is(err, inbox.ErrProduced) || !inboxmw.ToPoison(err) {
		t.Errorf("got %v", err)
	}
	s.stop()
	s.wantCount(keys, 0)
	wantEqual(t, "published", s.sent.all(), nil)
}

// acking starts a processor that acks errors, with one handler.
func acking(s *shop, cfg cqrs.CommandProcessorConfig, h handleFunc) {
	s.t.Helper()
	cfg.AckCommandHandlingErrors = true
	if err := commandProcessor(s, cfg).AddHandlers(onPlaceOrder(handlerName, h)); err != nil {
		s.t.Fatal(err)
	}
	s.router.AddPlugin(s.in.Plugin)
	s.start()
}

// wantDiscard has a command delivered twice, and fails unless it was discarded.
func (s *shop) wantDiscard() {
	s.t.Helper()
	for _, outcome := range []inbox.Outcome{inbox.Discarded, inbox.Duplicate} {
		s.deliver(&placeOrder{ID: "o1"})
		s.wantOutcomes(outcome)
	}
	s.stop()
	s.wantCount("orders", 0)
	s.wantCount(keys+" WHERE outcome = 'discarded: "+errHandler.Error()+"'", 1)
}
