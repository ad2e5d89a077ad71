package components_test

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
)

// What the handlers of the tests consume, and what they publish.
type (
	orderPlaced   struct{ ID string }
	placeOrder    struct{ ID string }
	orderAccepted struct{ ID string }
	sendMail      struct{ ID string }
)

// component is a processor of cqrs with the bus that its handlers use.
type component struct {
	name    string
	topic   string              // of what is published through bus
	consume func(id string) any // makes what the handler gets
	bus     func(s *shop, to message.Publisher) bus
	add     func(s *shop, name string, h handleFunc) error // to the router
}

// bus publishes something for an order.
type bus func(ctx context.Context, id string) error

// handleFunc handles an order.
type handleFunc func(ctx context.Context, id string) error

func components() []component {
	event := func(id string) any { return &orderPlaced{ID: id} }
	return []component{
		{name: "event processor", topic: "orderAccepted", consume: event, bus: newEventBus, add: addToEventProcessor},
		{name: "event group processor", topic: "orderAccepted", consume: event, bus: newEventBus, add: addToEventGroup},
		{name: "command processor", topic: "sendMail", consume: func(id string) any { return &placeOrder{ID: id} }, bus: newCommandBus, add: addToCommandProcessor},
	}
}

func newEventBus(s *shop, to message.Publisher) bus {
	b, err := cqrs.NewEventBusWithConfig(to, cqrs.EventBusConfig{
		GeneratePublishTopic: func(p cqrs.GenerateEventPublishTopicParams) (string, error) { return p.EventName, nil },
		Marshaler:            marshaler,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return func(ctx context.Context, id string) error { return b.Publish(ctx, &orderAccepted{ID: id}) }
}

func newCommandBus(s *shop, to message.Publisher) bus {
	b := commandBus(s, to)
	return func(ctx context.Context, id string) error { return b.Send(ctx, &sendMail{ID: id}) }
}

func commandBus(s *shop, to message.Publisher) *cqrs.CommandBus {
	b, err := cqrs.NewCommandBusWithConfig(to, cqrs.CommandBusConfig{
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return p.CommandName, nil },
		Marshaler:            marshaler,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func addToEventProcessor(s *shop, name string, h handleFunc) error {
	return eventProcessor(s).AddHandlers(onOrderPlaced(name, h))
}

func onOrderPlaced(name string, h handleFunc) cqrs.EventHandler {
	return cqrs.NewEventHandler(name, func(ctx context.Context, e *orderPlaced) error { return h(ctx, e.ID) })
}

func eventProcessor(s *shop) *cqrs.EventProcessor {
	p, err := cqrs.NewEventProcessorWithConfig(s.router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(p cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return p.EventName, nil },
		SubscriberConstructor: func(cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return s.broker, nil
		},
		AckOnUnknownEvent: true,
		Marshaler:         marshaler,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func addToEventGroup(s *shop, name string, h handleFunc) error {
	return addGroup(s, name, h)
}

func addGroup(s *shop, name string, handlers ...handleFunc) error {
	p, err := cqrs.NewEventGroupProcessorWithConfig(s.router, cqrs.EventGroupProcessorConfig{
		GenerateSubscribeTopic: func(cqrs.EventGroupProcessorGenerateSubscribeTopicParams) (string, error) {
			return marshaler.Name(&orderPlaced{}), nil
		},
		SubscriberConstructor: func(cqrs.EventGroupProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return s.broker, nil
		},
		Marshaler: marshaler,
	})
	if err != nil {
		return err
	}
	group := make([]cqrs.GroupEventHandler, 0, len(handlers))
	for _, h := range handlers {
		group = append(group, cqrs.NewGroupEventHandler(func(ctx context.Context, e *orderPlaced) error { return h(ctx, e.ID) }))
	}
	return p.AddHandlersGroup(name, group...)
}

func addToCommandProcessor(s *shop, name string, h handleFunc) error {
	return commandProcessor(s, cqrs.CommandProcessorConfig{}).AddHandlers(onPlaceOrder(name, h))
}

func onPlaceOrder(name string, h handleFunc) cqrs.CommandHandler {
	return cqrs.NewCommandHandler(name, func(ctx context.Context, c *placeOrder) error { return h(ctx, c.ID) })
}

// commandProcessor completes cfg with what all have in common.
func commandProcessor(s *shop, cfg cqrs.CommandProcessorConfig) *cqrs.CommandProcessor {
	cfg.GenerateSubscribeTopic = func(p cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return p.CommandName, nil }
	cfg.SubscriberConstructor = func(cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
		return s.broker, nil
	}
	cfg.Marshaler = marshaler
	p, err := cqrs.NewCommandProcessorWithConfig(s.router, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}
