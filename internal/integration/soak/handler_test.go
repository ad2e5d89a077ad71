package soak_test

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// The troubles of a handler.
const (
	failsBefore = "handler fails before its effect"
	failsAfter  = "handler fails after its effect"
	panics      = "handler panics"
	changes     = "handler changes the message, and fails"
)

var errHandler = errors.New("the handler does not want to")

// handler writes an effect and returns outputs, with new UUIDs each time it runs.
func handler(c *chance, write func(ctx context.Context, id string) error) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		id := msg.UUID
		if c.in(50, failsBefore) {
			return nil, errHandler
		}
		if err := write(msg.Context(), id); err != nil {
			return nil, err
		}
		switch {
		case c.in(50, failsAfter):
			return nil, errHandler
		case c.in(50, panics):
			panic(errHandler)
		case c.in(50, changes):
			msg.UUID, msg.Payload = "changed", nil
			msg.Metadata.Set("changed", "yes")
			return nil, errHandler
		}
		outputs := make([]*message.Message, 0, outputsOfEach)
		for range outputsOfEach {
			out := message.NewMessage(watermill.NewUUID(), msg.Payload)
			out.Metadata.Set("order", id)
			outputs = append(outputs, out)
		}
		return outputs, nil
	}
}
