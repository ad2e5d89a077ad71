package components_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/components/requestreply"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// desk answers commands with the number of orders.
type desk struct {
	*shop
	backend *requestreply.PubSubBackend[int]
	bus     *cqrs.CommandBus
	errs    chan error // how each delivery passed the inbox
}

type replyFunc func(ctx context.Context, cmd *placeOrder) (int, error)

// openDesk starts a desk.
func openDesk(t *testing.T, cfg requestreply.PubSubBackendConfig, h replyFunc) *desk {
	t.Helper()
	d := newDesk(t, cfg, h)
	d.start()
	return d
}

// newDesk makes a desk whose replies go through the publisher of its inbox.
func newDesk(t *testing.T, cfg requestreply.PubSubBackendConfig, h replyFunc) *desk {
	t.Helper()
	d := &desk{shop: openShop(t, inboxmw.Config{}), errs: make(chan error, 64)}
	d.bus = commandBus(d.shop, d.broker)
	cfg.Publisher = d.in.Publisher("replies", tee{first: d.sent, second: d.broker})
	cfg.SubscriberConstructor = func(requestreply.PubSubBackendSubscribeParams) (message.Subscriber, error) { return d.broker, nil }
	cfg.GeneratePublishTopic = func(requestreply.PubSubBackendPublishParams) (string, error) { return "replies", nil }
	cfg.GenerateSubscribeTopic = func(requestreply.PubSubBackendSubscribeParams) (string, error) { return "replies", nil }
	var err error
	if d.backend, err = requestreply.NewPubSubBackend[int](cfg, requestreply.BackendPubsubJSONMarshaler[int]{}); err != nil {
		t.Fatal(err)
	}
	handler := requestreply.NewCommandHandlerWithResult(handlerName, d.backend, h)
	if err := commandProcessor(d.shop, cqrs.CommandProcessorConfig{}).AddHandlers(handler); err != nil {
		t.Fatal(err)
	}
	d.router.AddMiddleware(passes(d.errs))
	d.router.AddPlugin(d.in.Plugin)
	return d
}

// ask sends a command that is delivered twice, and returns its first reply.
func (d *desk) ask() requestreply.Reply[int] {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	reply, err := requestreply.SendWithReply(ctx, twice{d.bus}, d.backend, &placeOrder{ID: "o1"})
	if err != nil {
		d.t.Fatal(err)
	}
	return reply
}

// twice is a command bus whose commands are delivered once more.
type twice struct{ *cqrs.CommandBus }

func (b twice) SendWithModifiedMessage(ctx context.Context, cmd any, modify func(*message.Message) error) error {
	for range 2 {
		err := b.CommandBus.SendWithModifiedMessage(ctx, cmd, func(m *message.Message) error {
			m.UUID = "m1"
			return modify(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tee publishes to two publishers.
type tee struct{ first, second message.Publisher }

func (t tee) Publish(topic string, messages ...*message.Message) error {
	if err := t.first.Publish(topic, messages...); err != nil {
		return err
	}
	return t.second.Publish(topic, messages...)
}

func (t tee) Close() error { return errors.Join(t.first.Close(), t.second.Close()) }

// accept writes an order and answers how many there are.
func accept(ctx context.Context, cmd *placeOrder) (n int, err error) {
	if err = write(ctx, "orders", cmd.ID); err != nil {
		return 0, err
	}
	tx, err := inboxsql.Tx(ctx)
	if err != nil {
		return 0, err
	}
	err = tx.GetContext(ctx, &n, "SELECT count(*) FROM orders")
	return n, err
}

func TestReplyLeavesAfterTheCommitAndAgainForADuplicate(t *testing.T) {
	t.Parallel()
	d := openDesk(t, requestreply.PubSubBackendConfig{}, accept)
	if r := d.ask(); r.Error != nil || r.HandlerResult != 1 {
		t.Errorf("got %d, %v", r.HandlerResult, r.Error)
	}
	first, second := await(t, d.sent.came, "the reply"), await(t, d.sent.came, "the reply to the duplicate")
	wantEqual(t, "reply", first, entry{topic: "replies", uuid: first.uuid, orders: 1, keys: 1})
	wantEqual(t, "reply to the duplicate", second, first)
	d.stop()
	d.wantCount("orders", 1)
}

func TestReplyOfAnAttemptThatFailsIsNotSent(t *testing.T) {
	t.Parallel()
	failed := make(chan struct{}, 1)
	failed <- struct{}{}
	d := openDesk(t, requestreply.PubSubBackendConfig{}, func(ctx context.Context, cmd *placeOrder) (int, error) {
		n, err := accept(ctx, cmd)
		select {
		case <-failed: // once, by whichever delivery comes first
			return n, errHandler
		default:
			return n, err
		}
	})
	if r := d.ask(); r.Error != nil || r.HandlerResult != 1 {
		t.Errorf("got %d, %v", r.HandlerResult, r.Error)
	}
	await(t, d.sent.came, "the reply")
	await(t, d.sent.came, "the reply to the duplicate")
	d.stop()
	d.wantCount("orders", 1)
	wantEqual(t, "different replies", len(uuids(d.sent.all())), 1)
}

func TestReplyThatCannotBeSentIsSentByTheNextDelivery(t *testing.T) {
	t.Parallel()
	d := openDesk(t, requestreply.PubSubBackendConfig{}, accept)
	d.sent.fails = 2
	if r := d.ask(); r.Error != nil || r.HandlerResult != 1 {
		t.Errorf("got %d, %v", r.HandlerResult, r.Error)
	}
	d.stop()
	d.wantCount("orders", 1)
	wantEqual(t, "different replies", len(uuids(d.sent.all())), 1)
}

// AckCommandErrors hides the error from the inbox, as AckCommandHandlingErrors does.
func TestAckCommandErrorsCommitsWhatWasWrittenBeforeTheError(t *testing.T) {
	t.Parallel()
	d := openDesk(t, requestreply.PubSubBackendConfig{AckCommandErrors: true}, func(ctx context.Context, cmd *placeOrder) (int, error) {
		return 0, fails(ctx, cmd.ID)
	})
	wantRefusal(t, d.ask())
	d.stop()
	d.wantCount("orders", 1)
}

// A discarded delivery has no messages, and the reply is one. A savepoint undoes
// the effects and keeps key and reply.
func TestAckCommandErrorsWithASavepointUndoesTheEffectsAndReplies(t *testing.T) {
	t.Parallel()
	d := openDesk(t, requestreply.PubSubBackendConfig{AckCommandErrors: true}, func(ctx context.Context, cmd *placeOrder) (int, error) {
		tx, err := inboxsql.Tx(ctx)
		if err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT handler"); err != nil {
			return 0, err
		}
		refusal := fails(ctx, cmd.ID)
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT handler"); err != nil {
			panic(err) // an error would be acked
		}
		return 0, refusal
	})
	wantRefusal(t, d.ask())
	await(t, d.sent.came, "the reply")
	await(t, d.sent.came, "the reply to the duplicate")
	d.stop()
	d.wantCount("orders", 0)
	d.wantCount(keys, 1)
	wantEqual(t, "different replies", len(uuids(d.sent.all())), 1)
}

func TestDiscardOfACommandWithAReplyFails(t *testing.T) {
	t.Parallel()
	d := openDesk(t, requestreply.PubSubBackendConfig{AckCommandErrors: true}, func(ctx context.Context, _ *placeOrder) (int, error) {
		return 0, inbox.Discard(ctx, errHandler)
	})
	command, err := marshaler.Marshal(&placeOrder{ID: "o1"})
	if err != nil {
		t.Fatal(err)
	}
	command.Metadata.Set(requestreply.OperationIDMetadataKey, "1")
	if err := d.broker.Publish("placeOrder", command); err != nil {
		t.Fatal(err)
	}
	if err := await(t, d.errs, "the delivery"); !errors.Is(err, inbox.ErrProduced) {
		t.Errorf("got %v", err)
	}
	d.stop()
	d.wantCount(keys, 0)
	wantEqual(t, "replies", d.sent.all(), nil)
}

// The command leaves when the handler that waits for its reply has committed.
func TestSendWithReplyInAHandlerWaitsInVain(t *testing.T) {
	t.Parallel()
	timeout := 100 * time.Millisecond
	d := newDesk(t, requestreply.PubSubBackendConfig{ListenForReplyTimeout: &timeout}, accept)
	commands := commandBus(d.shop, d.in.Publisher("commands", d.sent))
	d.router.AddConsumerHandler("asks", "asks", d.broker, func(msg *message.Message) error {
		r, err := requestreply.SendWithReply(msg.Context(), commands, d.backend, &placeOrder{ID: "o1"})
		var late requestreply.ReplyTimeoutError
		if err != nil || !errors.As(r.Error, &late) {
			t.Errorf("got %d, %v, %v, want a timeout", r.HandlerResult, r.Error, err)
		}
		wantEqual(t, "commands sent before the commit", d.sent.all(), nil)
		return nil
	})
	d.start()
	if err := d.broker.Publish("asks", message.NewMessage("m1", nil)); err != nil {
		t.Fatal(err)
	}
	sent := await(t, d.sent.came, "the command")
	wantEqual(t, "sent", sent, entry{topic: "placeOrder", uuid: sent.uuid, keys: 1})
}

// wantRefusal fails unless the caller was told the error of the handler.
func wantRefusal(t *testing.T, r requestreply.Reply[int]) {
	t.Helper()
	if r.Error == nil || r.Error.Error() != errHandler.Error() {
		t.Errorf("got %d, %v, want the error of the handler", r.HandlerResult, r.Error)
	}
}
