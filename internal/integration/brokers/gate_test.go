package brokers_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// gate holds one delivery inside of its handler, whose effect is written and not
// committed, until it is opened.
type gate struct {
	before     atomic.Int64 // how many deliveries pass before
	order      atomic.Value // that is held; a string
	held, open happening
}

func newGate(before int64) *gate {
	g := &gate{held: newHappening(), open: newHappening()}
	g.before.Store(before)
	g.order.Store("")
	return g
}

// pass is for service.inside.
func (g *gate) pass(msg *message.Message) error {
	if g.before.Add(-1) != -1 {
		return nil
	}
	id, err := orderID(msg)
	if err != nil {
		return err
	}
	g.order.Store(id)
	g.held.happen()
	select {
	case <-g.open.done:
		return nil
	case <-time.After(2 * patience): // else the test could take this for what it waits for
		return errors.New("the gate was not opened")
	}
}

// holds reports whether msg is the message that is, or was, held.
func (g *gate) holds(msg *message.Message) bool {
	id, err := orderID(msg)
	return err == nil && id == g.order.Load()
}

// untilMute is a middleware outside of the inbox. When the held delivery has been
// committed, it lets the router go on only after it has closed its publisher: a
// router need not wait for deliveries with that, so this is what deploys do to those
// that are slow.
func (g *gate) untilMute(m *member) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			produced, err := next(msg)
			if err == nil && g.holds(msg) {
				select {
				case <-m.mute.done:
				case <-time.After(patience):
					return nil, errors.New("the router does not close its publisher")
				}
			}
			return produced, err
		}
	}
}

// deployInMidWork starts a member and closes it while it has a delivery in its
// handler, which is then committed. It returns the order of that.
func (s *service) deployInMidWork(t *testing.T) (order string) {
	t.Helper()
	g := newGate(5)
	s.inside, s.outside, s.until = g.pass, g.untilMute, g.held.done
	m := s.start(t)
	g.held.await(t, "a delivery is in the handler")
	eventually(t, "the router waits for its next message", func() (bool, string) {
		got, began := m.got.Load(), m.began.Load()
		return got == began, fmt.Sprintf("%d of %d deliveries have begun", began, got)
	})
	closed := newHappening()
	go func() {
		defer closed.happen()
		m.close()
	}()
	m.closing.await(t, "the member begins to close")
	g.open.happen()
	closed.await(t, "the member is closed")
	s.inside, s.outside, s.until = nil, nil, nil
	order, _ = g.order.Load().(string)
	return order
}
