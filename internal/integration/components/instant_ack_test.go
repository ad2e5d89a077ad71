package components_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// Brokers cancel the context of a message that is acked. The commit is then the
// only chance, so that the cancellation must not keep the inbox from it.
func TestInstantAckOnABrokerThatThenCancelsTheContext(t *testing.T) {
	t.Parallel()
	s := openShop(t, inboxmw.Config{})
	s.router.AddMiddleware(middleware.InstantAck, func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			<-msg.Context().Done()
			return next(msg)
		}
	})
	s.router.AddPlugin(s.in.Plugin)
	s.router.AddConsumerHandler("bookings", "orderPlaced", s.broker, inboxmw.TxConsumerHandler(book))
	s.start()
	s.deliver(&orderPlaced{ID: "o1"})
	s.wantOutcomes(inbox.Processed)
	s.stop()
	s.wantCount("bookings", 1)
}
