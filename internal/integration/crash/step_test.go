package crash_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// step is where in a delivery a worker dies.
type step string

const (
	nowhere      step = ""
	beforeClaim  step = "before the claim"
	afterClaim   step = "after the claim"
	beforeWrites step = "in the handler, before it writes"
	afterWrites  step = "in the handler, after it wrote"
	afterHandler step = "after the handler"
	beforeCommit step = "before COMMIT is sent"
	commitSent   step = "COMMIT sent, its answer not read"
	afterCommit  step = "after COMMIT, before publishing"
	midPublish   step = "between two outputs"
	beforeAck    step = "after publishing, before the ack"
	afterAck     step = "after the router's ack"
)

func steps() []step {
	return []step{
		beforeClaim, afterClaim, beforeWrites, afterWrites, afterHandler, beforeCommit,
		commitSent, afterCommit, midPublish, beforeAck, afterAck,
	}
}

// life is the life of a worker, which ends when it comes to a step the nth time.
type life struct {
	at     step
	nth    int64
	passed atomic.Int64

	mu     sync.Mutex
	parent *os.File
}

// pass kills the worker if it is to die here. The parent is told first.
func (l *life) pass(at step) {
	if at != l.at || l.passed.Add(1) != l.nth {
		return
	}
	l.tell("died", string(at))
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // the signal is on its way
}

func (l *life) tell(what, of string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintf(l.parent, "%s\t%s\n", what, of); err != nil {
		os.Exit(3) // the parent is gone
	}
}
