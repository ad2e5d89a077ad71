package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"
)

// trouble is what goes wrong inside a worker that lives. It is safe for
// concurrent use.
type trouble struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newTrouble(seed, worker uint64) *trouble {
	return &trouble{rand: rand.New(rand.NewPCG(seed, worker))} //nolint:gosec // faults, not secrets
}

var (
	errRender    = errors.New("rendering the invoice failed")
	errNoBroker  = errors.New("no connection to the broker")
	errNoConfirm = errors.New("the broker did not confirm")
)

// in has the handler fail, panic or be interrupted at times, after its invoice is
// written: before that, nothing can be doubled.
func (t *trouble) in(h handler) handler {
	return func(ctx context.Context, db sqlx.ExtContext, msg *message.Message) ([]*message.Message, error) {
		if t.strikes(6) {
			interrupted, cancel := context.WithTimeout(ctx, t.within(200*time.Microsecond))
			defer cancel()
			ctx = interrupted
		}
		produced, err := h(ctx, db, msg)
		switch {
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case t.strikes(4):
			return nil, errRender
		case t.strikes(3):
			panic(errRender)
		}
		return produced, nil
	}
}

// publishing fails at times, before the message is sent or after.
func (t *trouble) publishing(send func() error) error {
	if t.strikes(3) {
		return errNoBroker
	}
	if err := send(); err != nil {
		return err
	}
	if t.strikes(3) {
		return errNoConfirm
	}
	return nil
}

// strikes reports true in that many of a hundred cases.
func (t *trouble) strikes(percent int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rand.IntN(100) < percent
}

func (t *trouble) within(limit time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.rand.Int64N(int64(limit)))
}
