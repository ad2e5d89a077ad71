package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// pace is an order each: if all were there at once, one member could take them
// before the other is ready.
const pace = 10 * time.Millisecond

// send is the producer. It sends every tenth order twice, as it saw no answer.
func (r *run) send(ctx context.Context, from, to int) (err error) {
	publisher, err := r.broker.publisher()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := from; n < to; n++ {
		o := order{ID: fmt.Sprintf("B-%d", 100001+n), Customer: fmt.Sprintf("C-%d", 7001+n%90), Cents: int64(990 * (1 + n%7))}
		payload, err := json.Marshal(o)
		if err != nil {
			return err
		}
		for range 1 + (n%10)/9 {
			if err := publisher.Publish(r.orders, message.NewMessage("order-"+o.ID, payload)); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
