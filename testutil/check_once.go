package testutil

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// copiesAtOnce is how many copies of a message [CheckOnce] delivers at once.
const copiesAtOnce = 4

// CheckOnce finds what a redelivery does. It delivers four copies of msg at once, as
// brokers can, then two more one after the other, and reports with tb.Errorf if the
// handler succeeded more than once, if a table has changed since the first four, or
// if a later delivery handed other messages to the router than the first.
//
// A delivery that fails as another one is in flight is repeated, as a broker does,
// up to Check.Timeout. What remains in the database is that of one delivery.
func CheckOnce(tb testing.TB, c Check, msg *message.Message) {
	tb.Helper()
	c.mustBeWhole(tb)
	store := &probe{Store: c.Store}
	runs := make(chan run, copiesAtOnce)
	for range copiesAtOnce {
		go func(msg *message.Message) { runs <- c.redeliver(tb, store, msg) }(msg.Copy())
	}
	all := make([]run, 0, copiesAtOnce+2)
	for range copiesAtOnce {
		all = append(all, <-runs)
	}
	before := c.snapshot(tb)
	all = append(all, c.redeliver(tb, store, msg.Copy()), c.redeliver(tb, store, msg.Copy()))
	after := c.snapshot(tb)

	keys := map[inbox.Key]int{}
	for _, call := range store.calls() {
		keys[call.key] += 0
		if call.succeeded {
			keys[call.key]++
		}
	}
	for i, r := range all {
		if r.err != nil || r.panicked != nil || r.exited || r.late {
			tb.Fatalf("delivery %d did not succeed, so nothing was checked: %s", i+1, r)
		}
	}
	switch {
	case len(keys) == 0:
		tb.Fatal("nothing was checked: the message was not protected, by Unprotected or Skip of Check.Config")
	case len(keys) > 1:
		tb.Errorf("one message has %d keys, so that each delivery is another message: %v\nConfig.Handler.Key and Source must tell the same of each copy.", len(keys), slices.Collect(maps.Keys(keys)))
	case slices.Max(slices.Collect(maps.Values(keys))) == 0:
		tb.Fatal("nothing was checked: the message was a duplicate from the first delivery on; take another one, or an empty inbox table")
	}
	for _, change := range c.changes(before, after) {
		tb.Errorf("%s\nA delivery of a message that was processed before did this. It was not the handler, if it ran once: look at middlewares, Config.Handler.OnDuplicate and observers.", change)
	}
	for i, r := range all[1:] {
		if want, got := contents(all[0].outputs), contents(r.outputs); !slices.Equal(want, got) {
			tb.Errorf("delivery %d handed other messages to the router than the first: %q, then %q", i+2, want, got)
		}
	}
}

// redeliver delivers msg until no other delivery of it is in the way.
func (c Check) redeliver(tb testing.TB, store *probe, msg *message.Message) run {
	tb.Helper()
	deadline := time.Now().Add(3 * max(c.Timeout, DefaultCheckTimeout))
	for {
		r := c.deliver(tb, store, msg.Copy())
		if !errors.Is(r.err, inbox.ErrInFlight) && !errors.Is(r.err, inbox.ErrBusy) || time.Now().After(deadline) {
			return r
		}
	}
}

// String says what became of it.
func (r run) String() string {
	switch {
	case r.panicked != nil:
		return fmt.Sprintf("the handler panicked: %v", r.panicked)
	case r.exited:
		return "the handler ended its goroutine"
	case r.late:
		return fmt.Sprintf("it took too long: %v", errors.Join(context.DeadlineExceeded, r.err))
	case r.err != nil:
		return r.err.Error()
	}
	return "it succeeded"
}

// contents are messages as they can be compared, without their payloads.
func contents(messages []*message.Message) []string {
	all := make([]string, 0, len(messages))
	for _, m := range messages {
		all = append(all, fmt.Sprintf("%s, %d bytes, %v", m.UUID, len(m.Payload), m.Metadata))
	}
	return all
}
