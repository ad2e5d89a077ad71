package inboxmw_test

import (
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// A message that comes after its window, from an archive that someone replays, goes
// to the poison queue for someone to decide.
func ExampleTooOld() {
	e := newExample()
	in := inboxmw.MustNew(e.store, &inboxmw.Config{Handler: inboxmw.Handler{
		SentAt: inboxmw.SentInMetadata("sent"),
		TooOld: inboxmw.TooOldFail,
	}})
	e.router.AddMiddleware(func(h message.HandlerFunc) message.HandlerFunc { // stands for PoisonQueue
		return func(msg *message.Message) ([]*message.Message, error) {
			out, err := h(msg)
			if inboxmw.ToPoison(err) {
				fmt.Println("poison:", msg.UUID)
				return nil, nil
			}
			return out, err
		}
	}, in.Middleware)
	e.router.AddConsumerHandler("invoices", "orders", e.broker, func(msg *message.Message) error {
		fmt.Println("invoice for", msg.UUID)
		return nil
	})

	old, young := message.NewMessage("ord-1001", nil), message.NewMessage("ord-1002", nil)
	old.Metadata.Set("sent", time.Now().AddDate(0, -3, 0).Format(time.RFC3339))
	young.Metadata.Set("sent", time.Now().Format(time.RFC3339))
	e.deliver(old, young)
	// Output:
	// poison: ord-1001
	// invoice for ord-1002
}

func ExampleSentInID() {
	msg := message.NewMessage("01ARZ3NDEKTSV4RRFFQ69G5FAV", nil)
	fmt.Println(inboxmw.SentInID(msg).UTC())
	// Output: 2016-07-30 23:54:10.259 +0000 UTC
}

func ExampleSentInMetadata() {
	msg := message.NewMessage("ord-1001", nil)
	msg.Metadata.Set("ce_time", "2026-12-01T09:00:00Z")
	fmt.Println(inboxmw.SentInMetadata("ce_time")(msg))
	// Output: 2026-12-01 09:00:00 +0000 UTC
}
