package brokers_test

import (
	"sync"
	"testing"
	"time"
)

// patience is how long anything may take that a test waits for, without a step
// towards it.
const patience = 60 * time.Second

// eventually waits until what is counted outside is as wanted: a broker tells no
// one when it has delivered. state says what there is, for when that never comes.
func eventually(t *testing.T, what string, state func() (reached bool, is string)) {
	t.Helper()
	deadline, was := time.After(patience), ""
	for {
		asked := time.Now()
		reached, is := state()
		if reached {
			return
		}
		if is != was {
			deadline, was = time.After(patience), is
		}
		select {
		case <-time.After(max(25*time.Millisecond, 9*time.Since(asked))): // to count must not be all that is done
		case <-deadline:
			t.Fatalf("after %s it is not so that %s: %s", patience, what, is)
		}
	}
}

// happening is something that happens once.
type happening struct {
	done   <-chan struct{}
	happen func()
}

func newHappening() happening {
	done := make(chan struct{})
	return happening{done: done, happen: sync.OnceFunc(func() { close(done) })}
}

// await waits for it.
func (h happening) await(t *testing.T, what string) {
	t.Helper()
	select {
	case <-h.done:
	case <-time.After(patience):
		t.Fatalf("after %s it is not so that %s", patience, what)
	}
}
