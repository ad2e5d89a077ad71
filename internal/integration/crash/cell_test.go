package crash_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox/internal/ledger"
)

const (
	patience = 60 * time.Second // for one life
	deaths   = 3
	wave     = 6 // messages that are sent before each life
)

// cell is a database and a broker, and where the workers die.
type cell struct {
	database, broker, way string
	at                    step
}

func (c cell) String() string {
	return strings.Join([]string{c.way, string(c.at), c.database, c.broker}, ", ")
}

// outcome is what came of a cell.
type outcome struct {
	verdict             ledger.Verdict
	sent, died, deliver int
}

// run lets workers die in a cell, and settles accounts when all is done. With a
// control, which never gets all done, that is when all is acked.
func (c cell) run(t *testing.T) outcome {
	t.Helper()
	suffix := fmt.Sprintf("_%08x", rand.Uint32()) //nolint:gosec // a name, not a secret
	place, db := newDatabase(t, c.database, suffix)
	r := &run{t: t, db: db, acked: map[string]bool{}}
	r.task = task{Database: place, Broker: newBroker(t, c.broker, suffix), Way: c.way}
	r.collect()
	publisher, err := r.task.Broker.publisher()
	if err != nil {
		t.Fatal(err)
	}
	if c.at == afterAck {
		r.quiet = handOver + handOver/2 // whether the broker has heard of the ack, it does not tell
	}
	for i := range deaths + 1 {
		for range wave {
			msg := message.NewMessage(fmt.Sprintf("m%03d%s", len(r.sent), suffix), message.Payload(`"x"`))
			if err := publisher.Publish(r.task.Broker.In, msg); err != nil {
				t.Fatal(err)
			}
			r.sent = append(r.sent, msg.UUID)
		}
		r.task.At, r.task.Nth = c.at, int64(i+1)
		if i == deaths {
			r.task.At = nowhere
		}
		r.live()
	}
	if err := publisher.Close(); err != nil {
		t.Error(err)
	}
	return outcome{ledger.Check(r.book()), len(r.sent), deaths, r.deliveries}
}

// run is a cell that runs.
type run struct {
	t    *testing.T
	task task
	db   *sql.DB

	quiet      time.Duration // for how long there must be no delivery at the end
	sent       []string
	acked      map[string]bool // whether the last delivery of a message was acked
	deliveries int

	mu  sync.Mutex
	out []ledger.Output
}

// collect reads the outputs.
func (r *run) collect() {
	r.t.Helper()
	subscriber, err := r.task.Broker.subscriber(r.task.Broker.Out)
	if err != nil {
		r.t.Fatal(err)
	}
	messages, err := subscriber.Subscribe(context.WithoutCancel(r.t.Context()), r.task.Broker.Out)
	if err != nil {
		r.t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for msg := range messages {
			r.mu.Lock()
			// The payload is a part of what must be the same when it comes again.
			r.out = append(r.out, ledger.Output{ID: msg.UUID + " " + string(msg.Payload), Of: msg.Metadata.Get(parentMeta)})
			r.mu.Unlock()
			msg.Ack()
		}
	})
	r.t.Cleanup(func() {
		if err := subscriber.Close(); err != nil {
			r.t.Error(err)
		}
		ended.Wait()
	})
}

// live is one life of a worker, to its death, or until all is done.
func (r *run) live() {
	r.t.Helper()
	definition, err := json.Marshal(r.task)
	if err != nil {
		r.t.Fatal(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	worker := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // this program
	worker.Env = append(os.Environ(), workerEnv+"="+string(definition))
	worker.ExtraFiles = []*os.File{to}
	worker.Stderr = os.Stderr
	stdin, err := worker.StdinPipe() // its end is the end of the worker
	if err != nil {
		r.t.Fatal(err)
	}
	defer stdin.Close() //nolint:errcheck // nothing is written
	if err = worker.Start(); err != nil {
		r.t.Fatal(err)
	}
	if err = to.Close(); err != nil {
		r.t.Error(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			lines <- scanner.Text()
		}
		_ = from.Close() // it was read to its end
	}()
	died := r.follow(lines, cancel)
	err = worker.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:errcheck,forcetypeassert // Unix
		r.t.Fatalf("a worker ended by %v", err)
	}
	if died != string(r.task.At) {
		r.t.Fatalf("a worker died at %q, not at %q: %d of %d acked, %s", died, r.task.At, r.ackedCount(), len(r.sent), ledger.Check(r.book()))
	}
}

// follow hears what a worker tells until it is dead, and kills it when all is done.
func (r *run) follow(lines <-chan string, kill func()) (died string) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	heard := time.Now()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return died
			}
			heard = time.Now()
			what, of, _ := strings.Cut(line, "\t")
			switch what {
			case "died":
				died = of
			case "delivered":
				r.deliveries++
				r.acked[of] = false
			case "acked":
				r.acked[of] = true
			}
		case <-look.C:
			if r.task.At == nowhere && r.done() && time.Since(heard) >= r.quiet {
				kill()
			}
		}
	}
}

func (r *run) ackedCount() int {
	n := 0
	for _, acked := range r.acked {
		if acked {
			n++
		}
	}
	return n
}

// done is when each message was acked, and, but for a control, all is there.
func (r *run) done() bool {
	if r.ackedCount() < len(r.sent) {
		return false
	}
	v := ledger.Check(r.book())
	return r.task.Way == naive || r.task.Way == without || len(v.Lost)+len(v.OutputsLost) == 0
}

func (r *run) book() ledger.Book {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := ledger.Book{Sent: r.sent, Outputs: append([]ledger.Output(nil), r.out...), Each: outputs}
	r.read("SELECT id, '' FROM "+r.task.Database.Effects, func(id, _ string) { b.Effects = append(b.Effects, id) })
	r.read("SELECT id, parent FROM out"+r.task.Database.Inbox, func(id, parent string) {
		b.Outputs = append(b.Outputs, ledger.Output{ID: id, Of: parent})
	})
	return b
}

func (r *run) read(query string, take func(a, b string)) {
	rows, err := r.db.QueryContext(context.WithoutCancel(r.t.Context()), query)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			r.t.Error(err)
		}
		take(a, b)
	}
	if err := rows.Err(); err != nil {
		r.t.Error(err)
	}
}
