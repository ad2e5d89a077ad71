package main

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox/inboxsql"
)

// PlaceOrder is a command.
type PlaceOrder struct{ ID string }

// OrderPlaced is an event.
type OrderPlaced struct{ ID string }

// No column is unique: it is the inbox that keeps rows from being doubled.
const tables = `CREATE TABLE orders (order_id TEXT NOT NULL); CREATE TABLE invoices (order_id TEXT NOT NULL)`

var marshaler = cqrs.JSONMarshaler{GenerateName: cqrs.StructName} //nolint:gochecknoglobals // constant

// shop handles commands and events, and publishes them.
type shop struct {
	commands *cqrs.CommandBus
	events   *cqrs.EventBus
}

func newShop(publisher message.Publisher) (*shop, error) {
	commands, err := cqrs.NewCommandBusWithConfig(publisher, cqrs.CommandBusConfig{
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return p.CommandName, nil },
		Marshaler:            marshaler,
	})
	if err != nil {
		return nil, err
	}
	events, err := cqrs.NewEventBusWithConfig(publisher, cqrs.EventBusConfig{
		GeneratePublishTopic: func(p cqrs.GenerateEventPublishTopicParams) (string, error) { return p.EventName, nil },
		Marshaler:            marshaler,
	})
	return &shop{commands: commands, events: events}, err
}

// addTo adds the handlers. Their names are the consumers of the inbox.
func (s *shop) addTo(router *message.Router, subscriber message.Subscriber) error {
	commands, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
		GenerateSubscribeTopic: func(p cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return p.CommandName, nil },
		SubscriberConstructor: func(cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber, nil
		},
		Marshaler: marshaler,
	})
	if err != nil {
		return err
	}
	events, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(p cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return p.EventName, nil },
		SubscriberConstructor: func(cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber, nil
		},
		Marshaler: marshaler,
	})
	if err != nil {
		return err
	}
	return errors.Join(
		commands.AddHandlers(cqrs.NewCommandHandler("place-order", s.placeOrder)),
		events.AddHandlers(cqrs.NewEventHandler("invoice", s.invoice)),
	)
}

func (s *shop) placeOrder(ctx context.Context, cmd *PlaceOrder) error {
	return errors.Join(
		insert(ctx, "INSERT INTO orders (order_id) VALUES (?)", cmd.ID),
		s.events.Publish(ctx, &OrderPlaced{ID: cmd.ID}),
		trouble(),
	)
}

func (s *shop) invoice(ctx context.Context, event *OrderPlaced) error {
	return errors.Join(insert(ctx, "INSERT INTO invoices (order_id) VALUES (?)", event.ID), trouble())
}

// insert writes through the transaction of the inbox, which is in the context.
func insert(ctx context.Context, statement, id string) error {
	tx, err := inboxsql.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, statement, id)
	return err
}

// trouble comes at times when a handler has done its work.
func trouble() error {
	switch rand.IntN(6) { //nolint:gosec // not a secret
	case 0:
		return errors.New("out of paper")
	case 1:
		panic("out of ink")
	}
	return nil
}
