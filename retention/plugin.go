package retention

import (
	"context"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Plugin runs the cleaner with a router, for AddPlugin: from its first
// subscription until it begins to close. The router's Close does not wait for it.
func (c *Cleaner) Plugin(r *message.Router) error {
	if logger := r.Logger(); logger != nil && c.logger.Load() == nil {
		c.logger.Store(&logger)
	}
	w := &watch{run: c.Run}
	r.AddSubscriberDecorators(func(s message.Subscriber) (message.Subscriber, error) {
		return watched{Subscriber: s, watch: w}, nil
	})
	return nil
}

// watch runs something while there are subscriptions. A router tells plugins
// nothing of its end, but ends the context of each subscription with it.
type watch struct {
	run func(context.Context)

	mu            sync.Mutex
	subscriptions int
	stop          context.CancelFunc
}

func (w *watch) subscribed(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subscriptions++; w.subscriptions == 1 {
		run, stop := context.WithCancel(context.WithoutCancel(ctx))
		w.stop = stop
		go w.run(run)
	}
	context.AfterFunc(ctx, w.ended)
}

func (w *watch) ended() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subscriptions--; w.subscriptions == 0 {
		w.stop()
	}
}

// watched tells of its subscriptions.
type watched struct {
	message.Subscriber
	watch *watch
}

func (s watched) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	messages, err := s.Subscriber.Subscribe(ctx, topic)
	if err == nil {
		s.watch.subscribed(ctx)
	}
	return messages, err
}
