package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// listen is whoever gets the invoices. It keeps their message ids, to its stop.
func (r *run) listen(ctx context.Context) (stop func() error, err error) {
	subscriber, err := r.broker.subscriber(r.invoices)
	if err != nil {
		return nil, err
	}
	messages, err := subscriber.Subscribe(ctx, r.invoices)
	if err != nil {
		return nil, errors.Join(err, subscriber.Close())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for msg := range messages {
			r.keep(msg)
			msg.Ack()
		}
	}()
	return func() error {
		err := subscriber.Close()
		<-ended
		return err
	}, nil
}

func (r *run) keep(msg *message.Message) {
	var i invoice
	if err := json.Unmarshal(msg.Payload, &i); err != nil {
		panic(err) // the handler made it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outputs[i.OrderID] == nil {
		r.outputs[i.OrderID] = map[string]bool{}
	}
	r.outputs[i.OrderID][msg.UUID] = true
	r.last.Store(time.Now().UnixNano())
}
