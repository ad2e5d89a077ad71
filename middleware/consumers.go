package inboxmw

import (
	"fmt"
	"sync"

	"github.com/watermill-inbox/inbox"
)

// consumers knows which handlers of an inbox are which consumer. The names of
// handlers are known only when their messages come, so that what New and Plugin
// cannot compare is found here, before any SQL.
type consumers struct {
	mu sync.Mutex
	by map[string]*consumer
}

type consumer struct {
	handler string
	active  map[*wrapped]int // deliveries, by wrapping: a router wraps each handler once
	warned  bool
}

// enter registers a delivery; leave must follow unless it fails. It fails with
// [inbox.ErrConsumer] if another handler is this consumer. twice is true once,
// when a handler of one name runs in two routers at the same time; one after the
// other is a restart.
func (c *consumers) enter(name, handler string, w *wrapped) (twice bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.by[name]
	if !ok {
		if c.by == nil {
			c.by = map[string]*consumer{}
		}
		k = &consumer{handler: handler, active: map[*wrapped]int{}}
		c.by[name] = k
	}
	if k.handler != handler {
		return false, fmt.Errorf("%w: %q and %q are both consumer %q; give each its own", inbox.ErrConsumer, k.handler, handler, name)
	}
	k.active[w]++
	if len(k.active) > 1 && !k.warned {
		k.warned = true
		return true, nil
	}
	return false, nil
}

func (c *consumers) leave(name string, w *wrapped) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.by[name]
	if k.active[w]--; k.active[w] == 0 {
		delete(k.active, w)
	}
}
