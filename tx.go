package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/watermill-inbox/inbox/internal/delivery"
)

// ContextWithTx returns a context that carries the handles of a transaction, the
// preferred one last: a store deposits what it began, a Bind hook adds what it
// made of that. Handles deposited earlier for the same delivery stay available.
func ContextWithTx(ctx context.Context, handles ...any) context.Context {
	return delivery.WithHandles(ctx, handles)
}

// Tx returns the transaction of the delivery that ctx belongs to, found by what
// it can be used as: T is a type of handle, or an interface that one satisfies.
// The latest deposited handle that is a T wins.
//
// Without such a transaction the error is [ErrNoTx], and says what the store
// offers instead. Once the delivery is over it is [ErrTxEnded], also for a
// goroutine that the handler left behind. Safe for concurrent use as far as the
// transaction itself is.
func Tx[T any](ctx context.Context) (T, error) {
	var none T
	handles := delivery.Handles(ctx)
	for _, h := range slices.Backward(handles) {
		if tx, ok := h.(T); ok {
			if s := delivery.FromContext(ctx); s != nil && s.Ended() {
				return none, fmt.Errorf("%w: the delivery is over, its transaction was committed or rolled back", ErrTxEnded)
			}
			return tx, nil
		}
	}
	want := strings.TrimPrefix(fmt.Sprintf("%T", (*T)(nil)), "*")
	if len(handles) == 0 {
		return none, fmt.Errorf("%w: no %s in this context; is the inbox middleware around this handler, and is this the context of the message?", ErrNoTx, want)
	}
	offers := make([]string, len(handles))
	for i, h := range handles {
		offers[len(handles)-1-i] = fmt.Sprintf("%T", h)
	}
	return none, fmt.Errorf("%w: no %s in this context; the store offers %s", ErrNoTx, want, strings.Join(offers, ", "))
}

// MustTx is [Tx] for handlers that cannot run without the transaction. It panics
// with the error of Tx; the delivery is then rolled back and nacked.
func MustTx[T any](ctx context.Context) T {
	tx, err := Tx[T](ctx)
	if err != nil {
		panic(err)
	}
	return tx
}
