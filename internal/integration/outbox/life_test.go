package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// place is where in its work a service is killed.
type place int

const (
	nowhere   place = iota
	midWork         // the transaction of the handler is open, or the relay has not published
	beforeAck       // the handler has committed, or the relay has published
)

// death kills a service when it comes to a place for the nth time.
type death struct {
	at  place
	nth int64
}

// life is one run of a service, from its start to its death.
type life struct {
	death
	passed    atomic.Int64
	dying     chan struct{} // closed by who is killed
	cancelled chan struct{} // closed when the router's context is
}

var errKilled = errors.New("killed")

// pass returns an error if the service dies here. Its router is then deaf.
func (l *life) pass(at place) error {
	if at != l.at || l.passed.Add(1) != l.nth {
		return nil
	}
	close(l.dying)
	<-l.cancelled
	return errKilled
}

// beforeAck is a middleware outside of all others.
func (l *life) beforeAck(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		out, err := next(msg)
		if err == nil {
			err = l.pass(beforeAck)
		}
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// service is a router that is killed and started again.
type service struct {
	build func(r *message.Router, l *life) error
	died  chan struct{} // closed when it has died all its deaths
	stop  chan struct{}
	ended sync.WaitGroup
}

// start runs a service through its deaths, and then on until the test ends.
func start(t *testing.T, deaths []death, build func(r *message.Router, l *life) error) *service {
	t.Helper()
	s := &service{build: build, died: make(chan struct{}), stop: make(chan struct{})}
	s.ended.Go(func() {
		for _, d := range append(deaths, death{}) {
			if d == (death{}) {
				close(s.died)
			}
			if err := s.live(d); err != nil {
				t.Errorf("a service: %v", err)
				return
			}
		}
	})
	t.Cleanup(func() {
		close(s.stop)
		s.ended.Wait()
	})
	return s
}

func (s *service) live(d death) error {
	l := &life{death: d, dying: make(chan struct{}), cancelled: make(chan struct{})}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	router.AddMiddleware(l.beforeAck)
	if err := s.build(router, l); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- router.Run(ctx) }()
	// A router that is closed while it still subscribes hangs until its CloseTimeout.
	select {
	case <-router.Running():
	case err := <-ran:
		return fmt.Errorf("the router did not start: %w", err)
	}
	select {
	case <-l.dying:
	case <-s.stop:
	case err := <-ran:
		return fmt.Errorf("the router ended by itself: %w", err)
	}
	cancel()
	close(l.cancelled)
	return errors.Join(router.Close(), <-ran)
}
