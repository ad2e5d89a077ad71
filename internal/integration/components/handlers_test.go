package components_test

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"
)

// book is a handler of a plain router with one effect.
func book(ctx context.Context, tx *sqlx.Tx, msg *message.Message) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO bookings (id) VALUES (?)", msg.UUID)
	return err
}

// passes is a middleware that tells how each delivery passed it.
func passes(errs chan<- error) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			out, err := next(msg)
			select {
			case errs <- err:
			default: // as for events
			}
			return out, err
		}
	}
}
