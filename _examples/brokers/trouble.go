package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"
)

type handler func(context.Context, *sqlx.Tx, *message.Message) ([]*message.Message, error)

var (
	errPrinter        = errors.New("the printer is out of paper")
	errNotPublished   = errors.New("the broker cannot be reached")
	errNoConfirmation = errors.New("the broker did not answer")
	errClosed         = errors.New("the publisher is closed")
)

// trouble decides what goes wrong.
type trouble struct {
	mu       sync.Mutex
	rand     *rand.Rand
	handlers int // that failed
	publish  int // calls that failed
}

func newTrouble(seed uint64) *trouble {
	return &trouble{rand: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // faults, not secrets
}

// strikes counts if it does, which is once in n times.
func (t *trouble) strikes(n int, count *int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rand.IntN(n) > 0 {
		return false
	}
	*count++
	return true
}

// handling returns a handler that fails at times, when it has done its work.
func (t *trouble) handling(h handler) handler {
	return func(ctx context.Context, tx *sqlx.Tx, msg *message.Message) ([]*message.Message, error) {
		produced, err := h(ctx, tx, msg)
		if err == nil && t.strikes(8, &t.handlers) {
			return nil, errPrinter
		}
		return produced, err
	}
}

// publishing returns a publisher that fails at times, before or after the fact.
func (t *trouble) publishing(p message.Publisher) message.Publisher { return unreliable{p, t} }

type unreliable struct {
	message.Publisher
	trouble *trouble
}

func (u unreliable) Publish(topic string, messages ...*message.Message) error {
	if u.trouble.strikes(16, &u.trouble.publish) {
		return errNotPublished
	}
	err := u.Publisher.Publish(topic, messages...)
	if err == nil && u.trouble.strikes(16, &u.trouble.publish) {
		return errNoConfirmation
	}
	return err
}
