package inbox_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func TestErrorsAreDistinct(t *testing.T) {
	t.Parallel()
	all := []error{
		inbox.ErrNoTx, inbox.ErrTxEnded, inbox.ErrInvalidKey, inbox.ErrInFlight, inbox.ErrBusy, inbox.ErrNoTable,
		inbox.ErrNoTopic, inbox.ErrProduced, inbox.ErrRecord, inbox.ErrNested, inbox.ErrConsumer,
	}
	for i, err := range all {
		for j, other := range all {
			if errors.Is(err, other) != (i == j) || (err.Error() == other.Error()) != (i == j) {
				t.Errorf("%q and %q", err, other)
			}
		}
	}
}

func TestStoreError(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("handler: %w", &inbox.StoreError{
		Op: inbox.OpCommit, Key: inbox.Key{Consumer: "invoices", MessageID: "order-1"}, Err: fmt.Errorf("%w: %w", inbox.ErrTxEnded, io.EOF),
	})
	mustSay(t, err, "inbox: commit invoices/order-1: inbox: transaction has ended: EOF")
	if !errors.Is(err, inbox.ErrTxEnded) || !errors.Is(err, io.EOF) || errors.Is(err, inbox.ErrBusy) {
		t.Errorf("%q is not what it wraps", err)
	}
	if e := (*inbox.StoreError)(nil); !errors.As(err, &e) || e.Op != inbox.OpCommit || e.Key.MessageID != "order-1" {
		t.Errorf("got %+v", e)
	}
	if inbox.Permanent(err) {
		t.Error("what fails in a store may succeed with the next delivery")
	}
}

func TestKeyError(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("handler: %w", &inbox.KeyError{
		Key: inbox.Key{Consumer: "invoices", MessageID: "order 1"}, Reason: "no field order_id", Err: io.ErrUnexpectedEOF,
	})
	mustSay(t, err, `inbox: invalid key invoices/"order 1": no field order_id`)
	if !errors.Is(err, inbox.ErrInvalidKey) || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, inbox.ErrConsumer) {
		t.Errorf("%q is not what it wraps", err)
	}
	if e := (*inbox.KeyError)(nil); !errors.As(err, &e) || e.Reason != "no field order_id" {
		t.Errorf("got %+v", e)
	}
	if !inbox.Permanent(err) {
		t.Error("the same key is refused again")
	}
	if !errors.Is(&inbox.KeyError{}, inbox.ErrInvalidKey) {
		t.Error("a KeyError without a cause is not ErrInvalidKey")
	}
}

type verdict bool

func (v verdict) Error() string   { return "verdict" }
func (v verdict) Permanent() bool { return bool(v) }

func TestPermanent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                       {nil, false},
		"an error without a word on it":  {io.EOF, false},
		"one that says so":               {verdict(true), true},
		"one that denies it":             {verdict(false), false},
		"a wrapped one that says so":     {fmt.Errorf("decode: %w", verdict(true)), true},
		"a joined one that says so":      {errors.Join(io.EOF, verdict(true)), true},
		"a wrapped one that denies it":   {fmt.Errorf("decode: %w", verdict(false)), false},
		"a key that cannot be stored":    {inbox.Key{Consumer: "c"}.Validate(), true},
		"a consumer that cannot be":      {inbox.Key{MessageID: "1"}.Validate(), false},
		"a busy database":                {inbox.ErrBusy, false},
		"a store error around a verdict": {&inbox.StoreError{Err: verdict(true)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := inbox.Permanent(c.err); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
