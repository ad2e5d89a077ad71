package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
)

const (
	// prefetch is how many orders a worker may hold unacked.
	prefetch = 16

	// hopeless is how many deliveries an order takes, on average, when the run is
	// given up: a handler that always fails is delivered to at once, for ever.
	hopeless = 20
)

// broker plays what outlives a worker: the queue of orders, which hands each one
// out until it is acked, and whoever receives the emails.
type broker struct {
	orders     int
	queue      []line // the next one first
	unacked    []line // handed out
	acked      int
	deliveries int
	emails     map[string]map[string]bool // by order, the ids of its emails
}

func newBroker(orders []line) *broker {
	return &broker{orders: len(orders), queue: slices.Clone(orders), emails: map[string]map[string]bool{}}
}

// stop is how a worker ends: in mid-work, at the first line of kind on once that
// many orders are acked. The zero value never comes.
type stop struct {
	after int
	on    kind
	kill  bool // else it is asked to close, as in a deploy
}

func (s stop) due(acked int, l line) bool { return l.Kind == s.on && acked >= s.after }

// serve runs a worker until s is due or all orders are acked. What is unacked
// then, goes back to the queue.
func (b *broker) serve(ctx context.Context, worker *exec.Cmd, s stop) error {
	stdin, err := worker.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := worker.StdoutPipe()
	if err != nil {
		return err
	}
	if err = worker.Start(); err != nil {
		return err
	}
	connected, err := b.converse(worker, stdin, bufio.NewReader(stdout), s)
	if err != nil {
		_ = worker.Process.Kill() // the error is what counts; Wait tells no more
		_ = worker.Wait()
		return err
	}
	b.queue, b.unacked = append(b.unacked, b.queue...), nil
	err = worker.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case connected:
		return fmt.Errorf("the worker ended by itself: %s", worker.ProcessState)
	case err != nil && !s.kill:
		return fmt.Errorf("the worker did not close: %w", err)
	}
	return nil
}

// converse hands out orders and notes what the worker says, to the end of its
// output. It reports whether that came unasked.
func (b *broker) converse(worker *exec.Cmd, stdin io.WriteCloser, stdout *bufio.Reader, s stop) (connected bool, err error) {
	connected = true
	toWorker := &wire{to: stdin}
	for {
		if connected {
			b.handOut(toWorker)
		}
		var l line
		l, err = receive(stdout)
		if errors.Is(err, io.EOF) {
			return connected, nil
		}
		if err == nil {
			err = b.note(l, connected)
		}
		if err != nil {
			return connected, err
		}
		switch {
		case !connected:
		case s.due(b.acked, l) && s.kill:
			connected, err = false, worker.Process.Kill()
		case s.due(b.acked, l), b.done():
			connected, err = false, stdin.Close()
		}
		if err != nil {
			return connected, err
		}
	}
}

func (b *broker) done() bool { return len(b.queue)+len(b.unacked) == 0 }

func (b *broker) handOut(toWorker *wire) {
	for len(b.unacked) < prefetch && len(b.queue) > 0 {
		// If the worker is gone, the end of its output says so.
		_ = toWorker.send(b.queue[0])
		b.unacked, b.queue = append(b.unacked, b.queue[0]), b.queue[1:]
	}
}

// note takes down what the worker says. An ack after the end of the connection is
// dropped, as by every broker; an email has been sent.
func (b *broker) note(l line, connected bool) error {
	switch l.Kind {
	case delivered:
		b.deliveries++
		if b.deliveries > hopeless*b.orders {
			return fmt.Errorf("%d deliveries, and only %d orders are acked", b.deliveries, b.acked)
		}
	case published:
		var e email
		if err := json.Unmarshal(l.Payload, &e); err != nil {
			return err
		}
		if b.emails[e.OrderID] == nil {
			b.emails[e.OrderID] = map[string]bool{}
		}
		b.emails[e.OrderID][l.ID] = true
	case acked:
		i := slices.IndexFunc(b.unacked, func(o line) bool { return o.ID == l.ID })
		if !connected || i < 0 {
			return nil // i < 0: the producer's copy of an order that is acked
		}
		b.unacked = slices.Delete(b.unacked, i, i+1)
		b.acked++
	case ordered:
		return fmt.Errorf("the worker sent order %s back", l.ID)
	}
	return nil
}

// receive reads one line. What a killed worker left of its last one is dropped.
func receive(from *bufio.Reader) (line, error) {
	b, err := from.ReadBytes('\n')
	if err != nil {
		return line{}, err
	}
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return line{}, fmt.Errorf("the worker sent no line: %w", err)
	}
	return l, nil
}
