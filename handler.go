package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/watermill-inbox/inbox/internal/delivery"
)

// SetResult keeps a short answer with the key, for whoever meets the duplicate
// (see Entry.Result). It is committed with the handler's effects, and only then.
// The last call wins; nil takes the result back. b must not be changed later.
//
// It returns [ErrNoTx] outside a handler that the inbox protects, and
// [ErrTxEnded] once the delivery is over. Safe for concurrent use.
func SetResult(ctx context.Context, b []byte) error {
	s, err := live(ctx)
	if err != nil {
		return err
	}
	if !s.SetResult(b) {
		return errOver
	}
	return nil
}

// Discard ends the delivery without its effects: whatever the handler returns,
// its writes are undone, the key is kept with the reason, and the message is
// acked, so that it is never processed again. It cannot be taken back within the
// delivery; the last reason wins. The reason is stored, cut after 1,000 bytes: do
// not put a payload into it. A handler that discards and yet returns messages
// fails with [ErrProduced], as they would be lost.
//
// It returns an error that wraps reason, so that a handler can end with
// return inbox.Discard(ctx, reason). A nil reason is an error. Outside a handler
// that the inbox protects the error is also [ErrNoTx], and once the delivery is
// over [ErrTxEnded]: the message is then not discarded but failed. Safe for
// concurrent use.
func Discard(ctx context.Context, reason error) error {
	if reason == nil {
		return errors.New("inbox: Discard needs a reason")
	}
	s, err := live(ctx)
	if err != nil {
		return fmt.Errorf("%w: cannot discard: %w", err, reason)
	}
	text := reason.Error()
	if text == "" {
		text = "discarded"
	}
	if !s.SetDiscard(text) {
		return fmt.Errorf("%w: cannot discard: %w", errOver, reason)
	}
	return fmt.Errorf("inbox: discarded: %w", reason)
}

var errOver = fmt.Errorf("%w: the delivery is over", ErrTxEnded)

func live(ctx context.Context) (*delivery.State, error) {
	s := delivery.FromContext(ctx)
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: this is not the context of a protected handler", ErrNoTx)
	case s.Ended():
		return nil, errOver
	}
	return s, nil
}
