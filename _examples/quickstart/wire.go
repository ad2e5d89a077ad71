package main

import (
	"encoding/json"
	"io"
	"sync"
)

// line is what passes between broker and worker: one JSON object a line.
type line struct {
	Kind    kind            `json:"kind"`
	ID      string          `json:"id"` // the message's UUID
	Payload json.RawMessage `json:"payload,omitempty"`
}

type kind string

const (
	ordered   kind = "ordered"   // broker to worker: an order to process
	delivered kind = "delivered" // worker to broker: the router was handed an order
	published kind = "published" // worker to broker: an email
	acked     kind = "acked"     // worker to broker: the router acked an order
)

// wire writes lines, each of them at once: a worker that is killed leaves at most
// one that is cut off. It is safe for concurrent use.
type wire struct {
	mu sync.Mutex
	to io.Writer
}

func (w *wire) send(l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.to.Write(append(b, '\n'))
	return err
}
