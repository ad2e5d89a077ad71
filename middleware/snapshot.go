package inboxmw

import (
	"context"
	"hash/maphash"
	"maps"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox/internal/delivery"
)

// saved is a message as it was delivered. Brokers redeliver a copy of the object
// that was nacked, with whatever a handler has made of it.
type saved struct {
	ctx      context.Context //nolint:containedctx // the message's own, put back when the handler is done
	uuid     string
	metadata message.Metadata
	payload  message.Payload
	hash     uint64
}

var seed = maphash.MakeSeed() //nolint:gochecknoglobals // one per process will do

func snapshot(msg *message.Message) saved {
	return saved{
		ctx:      msg.Context(),
		uuid:     msg.UUID,
		metadata: maps.Clone(msg.Metadata),
		payload:  msg.Payload,
		hash:     maphash.Bytes(seed, msg.Payload),
	}
}

// restore undoes what was done to msg, and reports what it cannot undo: a change
// of the payload's bytes.
func (s saved) restore(msg *message.Message) (changed bool) {
	msg.UUID, msg.Metadata, msg.Payload = s.uuid, s.metadata, s.payload
	return maphash.Bytes(seed, msg.Payload) != s.hash
}

// acked reports whether msg has been acked.
func acked(msg *message.Message) bool {
	select {
	case <-msg.Acked():
		return true
	default:
		return false
	}
}

// ownerOf returns who owns the delivery that ctx belongs to, nil if there is
// none or it is over.
func ownerOf(ctx context.Context) *owner {
	s := delivery.FromContext(ctx)
	if s == nil || s.Ended() {
		return nil
	}
	o, _ := s.Owner.(*owner)
	return o
}
