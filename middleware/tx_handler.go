package inboxmw

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// TxHandler makes a handler of a function that takes the transaction, of any
// type that the store offers. Without the inbox around it, it fails with
// [inbox.ErrNoTx] and h does not run.
func TxHandler[T any](h func(ctx context.Context, tx T, msg *message.Message) ([]*message.Message, error)) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		tx, err := inbox.Tx[T](msg.Context())
		if err != nil {
			return nil, err
		}
		return h(msg.Context(), tx, msg)
	}
}

// TxConsumerHandler is [TxHandler] for handlers that produce no messages.
func TxConsumerHandler[T any](h func(ctx context.Context, tx T, msg *message.Message) error) message.NoPublishHandlerFunc {
	return func(msg *message.Message) error {
		tx, err := inbox.Tx[T](msg.Context())
		if err != nil {
			return err
		}
		return h(msg.Context(), tx, msg)
	}
}
