package inbox

import (
	"context"
	"time"
)

// Outcome is how a delivery ended. The values are names in metrics and logs, and
// do not change.
type Outcome string

// The outcomes.
const (
	Processed   Outcome = "processed"   // first delivery; effects and key are committed
	Duplicate   Outcome = "duplicate"   // the key was known; nothing done but the replay
	Discarded   Outcome = "discarded"   // effects undone on the handler's word, key kept
	Failed      Outcome = "failed"      // rolled back, or of unknown fate; will be delivered again
	InFlight    Outcome = "in_flight"   // another delivery still has the key; will be delivered again
	Unprotected Outcome = "unprotected" // the handler is configured to run without the inbox
	Skipped     Outcome = "skipped"     // the message was configured to pass without the inbox
)

// Event is the end of a delivery.
type Event struct {
	Delivery Delivery // Key may be empty if Outcome is Failed, Unprotected or Skipped
	Handler  string   // the router's name of the handler
	Topic    string   // the subscribed topic; empty outside a router
	Outcome  Outcome

	// Err is why the delivery did not commit; nil unless Outcome is Failed or InFlight.
	Err error

	// Duration is from taking the message to the store's answer.
	Duration time.Duration

	// Age is how long ago a duplicate was processed first, by the database's clock.
	Age time.Duration

	// Produced counts the messages handed to the router: produced by this run, or
	// replayed for a duplicate.
	Produced int

	// Mismatch says that a duplicate has another payload than the first delivery,
	// where fingerprints are kept.
	Mismatch bool

	// TooOld says that the message had no key, and was sent longer ago than the
	// window: it may have been processed before, and been forgotten.
	TooOld bool

	// EarlyAck says that the message was acked before the commit: if Outcome is
	// not Processed, Duplicate or Discarded, it is lost.
	EarlyAck bool
}

// Observer watches deliveries, for metrics and traces. Both methods are called
// once per delivery, concurrently, in the message path: they must be fast and
// must not panic.
type Observer interface {
	// DeliveryStart is called before the store is asked. The returned context is
	// that of the store and the handler; it must derive from ctx. d.Key may be
	// empty.
	DeliveryStart(ctx context.Context, d Delivery) context.Context

	// DeliveryEnd is called with the context that DeliveryStart returned.
	DeliveryEnd(ctx context.Context, e Event)
}
