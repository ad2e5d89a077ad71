package testutil

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// Defaults of [Check].
const (
	DefaultCheckRows    = 10_000
	DefaultCheckTimeout = 10 * time.Second
	DefaultCheckName    = "checked"
)

// Check is a handler of yours with all that it needs, for [CheckAtomic] and
// [CheckOnce]. Run it on a database that nothing else writes to meanwhile.
type Check struct {
	// DB reaches the database of the store. It must be set. All tables that its role
	// can read are compared: on PostgreSQL those of all schemas but the system's, on
	// MySQL those of the current database, on SQLite those of the main file.
	DB *sql.DB

	// Store is the store of the inbox. It must be set.
	Store inbox.Store

	// Handler is what is checked. It must be set.
	Handler message.HandlerFunc

	// Config is that of the inbox. Nil: its defaults.
	Config *inboxmw.Config

	// Name is that of the handler in the router, by which Config.Handlers finds its
	// settings. Empty: [DefaultCheckName].
	Name string

	// Published is the publisher that the handler was given, if it publishes by
	// itself: what comes to it before the commit is reported. Nil: that is not looked
	// at.
	Published *Recorder

	// Ignore are tables that are not compared, as name or schema.name.
	Ignore []string

	// MaxRows is how many rows a table may have. One that has more is reported, as it
	// was not compared. Zero: [DefaultCheckRows].
	MaxRows int

	// Timeout is how long a delivery may take. Zero: [DefaultCheckTimeout].
	Timeout time.Duration
}

// CheckAtomic finds effects of a handler outside of the transaction. It delivers
// msg, lets the transaction fail after the handler's last statement, as a commit
// can, and reports with tb.Errorf each table that has changed nevertheless, with its
// rows, and each message that was published. Nothing of msg is left in the database
// if nothing is reported.
//
// It also reports when it could not tell: the handler failed, panicked or did not
// return in time, the message is a duplicate or not protected, a table has too many
// rows.
//
// It sees no effects outside of this database, and none of a goroutine that goes on
// after the handler has returned. Sequences and the counters of AUTO_INCREMENT are not
// compared: a rollback does not turn them back.
func CheckAtomic(tb testing.TB, c Check, msg *message.Message) {
	tb.Helper()
	c.mustBeWhole(tb)
	before := c.snapshot(tb)
	published := c.Published.count()
	store := &probe{Store: c.Store, fail: true}
	run := c.deliver(tb, store, msg.Copy())
	run.mustReachTheEnd(tb, c, store)
	for _, change := range c.changes(before, c.snapshot(tb)) {
		tb.Errorf("%s\nThe transaction was rolled back, and this stays. It was written through the pool, by another transaction, or after a COMMIT or DDL of the handler: "+
			"use the transaction of the message's context (inboxsql.Tx, inbox.Tx). If another program writes to this table, name it in Check.Ignore.", change)
	}
	for _, p := range c.Published.since(published) {
		tb.Errorf("message %s was published to %s before the commit, and the transaction was rolled back.\n"+
			"Return it from the handler, publish through Inbox.Publisher, or write it to an outbox in the transaction (inboxmw.Outbox, inboxmw.TxPublisher).", p.Message.UUID, p.Topic)
	}
}

func (c Check) mustBeWhole(tb testing.TB) {
	tb.Helper()
	var missing []string
	if c.DB == nil {
		missing = append(missing, "DB")
	}
	if c.Store == nil {
		missing = append(missing, "Store")
	}
	if c.Handler == nil {
		missing = append(missing, "Handler")
	}
	if len(missing) > 0 {
		tb.Fatalf("testutil: Check.%s must be set", strings.Join(missing, " and Check."))
	}
}

// errForced is the failure after the handler's end.
var errForced = errors.New("testutil: the transaction fails, as a commit can")

// run is what became of a delivery.
type run struct {
	outputs  []*message.Message
	err      error
	panicked any
	exited   bool // by Goexit, as FailNow does
	stuck    bool // the handler has not returned at all
	late     bool // the time was over
}

// deliver delivers msg through an inbox on store, as a router does.
func (c Check) deliver(tb testing.TB, store inbox.Store, msg *message.Message) run {
	tb.Helper()
	in, err := inboxmw.New(store, c.Config)
	if err != nil {
		tb.Fatal(err)
	}
	timeout := cmp.Or(c.Timeout, DefaultCheckTimeout)
	routed := routed(tb, cmp.Or(c.Name, DefaultCheckName))
	began := time.Now()
	ctx, cancel := context.WithTimeout(routed, timeout)
	defer cancel()
	msg.SetContext(ctx)
	ended := make(chan run, 1)
	go func() {
		r := run{exited: true}
		defer func() {
			if r.exited {
				r.panicked = recover()
			}
			r.exited = r.exited && r.panicked == nil
			ended <- r
		}()
		r.outputs, r.err = in.Middleware(c.Handler)(msg)
		r.exited = false
	}()
	select {
	case r := <-ended:
		r.late = r.err != nil && time.Since(began) >= timeout // the context that the handler has ends by a timer of its own
		return r
	case <-time.After(2*timeout + time.Second): // it does not look at its context
		return run{stuck: true, late: true}
	}
}

// mustReachTheEnd reports why a run does not show what a commit would.
func (r run) mustReachTheEnd(tb testing.TB, c Check, store *probe) {
	tb.Helper()
	const nothing = "nothing was checked: "
	const partly = "only what ran before that was checked: "
	switch calls := store.calls(); {
	case r.late:
		what := "the handler did not return within %s."
		if r.stuck {
			what = "the handler did not return within %s, nor when its context was done."
			defer tb.FailNow() // it may still write
		}
		tb.Errorf(partly+what+"\nDoes it wait for the pool while the transaction of its message holds a row, or the only connection?\n"+
			"Then it writes outside of the transaction: use that of the message's context (inboxsql.Tx, inbox.Tx).", cmp.Or(c.Timeout, DefaultCheckTimeout))
	case r.exited:
		tb.Errorf(partly + "the handler ended its goroutine (runtime.Goexit, FailNow)")
	case r.panicked != nil:
		tb.Errorf(partly+"the handler panicked: %v", r.panicked)
	case errors.Is(r.err, errForced):
	case len(calls) == 0 && r.err == nil:
		tb.Errorf(nothing + "the message was not protected, by Unprotected or Skip of Check.Config")
	case len(calls) == 0:
		tb.Errorf(nothing+"%v", r.err)
	case calls[0].duplicate:
		tb.Errorf(nothing+"message %s is a duplicate; take another one, or an empty inbox table", calls[0].key)
	case !calls[0].ran:
		tb.Errorf(nothing+"the handler did not run: %v", r.err)
	default:
		tb.Errorf(partly+"the handler failed: %v", r.err)
	}
}

// probe is a store that tells what it was asked, and can fail after the handler.
type probe struct {
	inbox.Store
	fail bool

	mu    sync.Mutex
	asked []call
}

// call is one call of Once.
type call struct {
	key       inbox.Key
	ran       bool // the handler was called
	succeeded bool // it returned no error
	duplicate bool
}

// Once implements [inbox.Store].
func (p *probe) Once(ctx context.Context, d inbox.Delivery, fn func(ctx context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	c := call{key: d.Key}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, c)
	}()
	e, duplicate, err := p.Store.Once(ctx, d, func(ctx context.Context) (inbox.Effect, error) {
		c.ran = true
		effect, err := fn(ctx)
		c.succeeded = err == nil
		if err == nil && p.fail {
			return inbox.Effect{}, errForced
		}
		return effect, err
	})
	c.duplicate = duplicate
	return e, duplicate, err
}

// Window implements [inbox.Windowed], as far as the store does.
func (p *probe) Window(consumer string) time.Duration {
	if w, ok := p.Store.(inbox.Windowed); ok {
		return w.Window(consumer)
	}
	return 0
}

func (p *probe) calls() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]call(nil), p.asked...)
}

// routed returns the context that a router gives the messages of a handler of that
// name.
func routed(tb testing.TB, name string) context.Context {
	tb.Helper()
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	got := make(chan context.Context, 1)
	router.AddHandler(name, topicIn, oneMessage{}, topicOut, &sink{}, func(msg *message.Message) ([]*message.Message, error) {
		got <- context.WithoutCancel(msg.Context())
		return nil, nil
	})
	if err := router.Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return <-got
}

// oneMessage is a subscriber that has one message, and then no more.
type oneMessage struct{}

// Subscribe implements [message.Subscriber].
func (oneMessage) Subscribe(context.Context, string) (<-chan *message.Message, error) {
	messages := make(chan *message.Message, 1)
	messages <- message.NewMessage("1", nil)
	close(messages)
	return messages, nil
}

// Close implements [message.Subscriber].
func (oneMessage) Close() error { return nil }

func (c Check) snapshot(tb testing.TB) *snapshot {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(c.Timeout, DefaultCheckTimeout))
	defer cancel()
	s, err := takeSnapshot(ctx, c.DB, cmp.Or(c.MaxRows, DefaultCheckRows), c.Ignore)
	if err != nil {
		tb.Fatal(fmt.Errorf("testutil: read the tables: %w", err))
	}
	return s
}

func (c Check) changes(before, after *snapshot) []string {
	var changes []string
	for _, name := range before.names(after) {
		if change := before.changed(after, name, cmp.Or(c.MaxRows, DefaultCheckRows)); change != "" {
			changes = append(changes, change)
		}
	}
	return changes
}
