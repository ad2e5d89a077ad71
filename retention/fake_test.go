package retention_test

import (
	"context"
	"sync"
	"time"

	"github.com/watermill-inbox/inbox"
)

// fake is a store with so many keys whose window is over.
type fake struct {
	mu           sync.Mutex
	keys         int
	takes        time.Duration                       // a batch
	fails        func(call int, b inbox.Batch) error // nil: none does
	answers      func(call int) (inbox.Swept, bool)  // nil, or false: as there are keys
	batches      []inbox.Batch
	times        []time.Time
	called, goOn chan struct{} // if not nil, a batch is told here, and waits for goOn
}

func (f *fake) Window(string) time.Duration { return inbox.DefaultWindow }

func (f *fake) Sweep(ctx context.Context, b inbox.Batch) (inbox.Swept, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := len(f.batches)
	f.batches = append(f.batches, b)
	f.times = append(f.times, time.Now())
	if f.called != nil {
		f.called <- struct{}{}
		<-f.goOn
	}
	if f.takes > 0 {
		select {
		case <-time.After(f.takes):
		case <-ctx.Done():
			return inbox.Swept{}, ctx.Err()
		}
	}
	if f.fails != nil {
		if err := f.fails(call, b); err != nil {
			return inbox.Swept{}, err
		}
	}
	if f.answers != nil {
		if swept, ok := f.answers(call); ok {
			return swept, nil
		}
	}
	n := min(f.keys, b.Limit)
	f.keys -= n
	return inbox.Swept{Removed: n, Done: n < b.Limit, Next: inbox.Position{Pass: b.From.Pass, After: b.From.After + "."}}, nil
}

func (f *fake) sizes() []int {
	sizes := make([]int, 0, len(f.batches))
	for _, b := range f.batches {
		sizes = append(sizes, b.Limit)
	}
	return sizes
}
