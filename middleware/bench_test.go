package inboxmw_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// answering is a store that costs nothing: what remains is the middleware.
type answering struct {
	duplicate bool
	record    []byte
}

func (s *answering) Once(ctx context.Context, d inbox.Delivery, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	if s.duplicate {
		return inbox.Entry{Delivery: d, Record: s.record}, true, nil
	}
	effect, err := fn(inbox.ContextWithTx(ctx, s))
	s.record = effect.Record
	return inbox.Entry{Delivery: d}, false, err
}

func BenchmarkMiddleware(b *testing.B) {
	ctx := routed(b, handlerName, publishTopic)
	payload := make([]byte, 1024)
	for _, c := range []struct {
		name     string
		produced int
	}{{"consumer", 0}, {"producer", 1}} {
		handler := func(*message.Message) ([]*message.Message, error) { //nolint:unparam // a handler has an error
			var out []*message.Message
			for i := range c.produced {
				out = append(out, message.NewMessage(strconv.Itoa(i), payload))
			}
			return out, nil
		}
		run := func(b *testing.B, h message.HandlerFunc) {
			b.Helper()
			msg := message.NewMessageWithContext(ctx, orderUUID, payload)
			msg.Metadata.Set("name", "OrderPlaced")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h(msg); err != nil {
					b.Fatal(err)
				}
			}
		}
		store := &answering{}
		h := inboxmw.MustNew(store, nil).Middleware(handler)
		b.Run(c.name+"/without", func(b *testing.B) { run(b, handler) })
		b.Run(c.name+"/first", func(b *testing.B) { run(b, h) })
		b.Run(c.name+"/duplicate", func(b *testing.B) {
			if _, err := h(message.NewMessageWithContext(ctx, orderUUID, payload)); err != nil {
				b.Fatal(err)
			}
			store.duplicate = true
			run(b, h)
		})
	}
}
