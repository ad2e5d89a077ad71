package inboxmw

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// SentInID reads the time that a UUID of version 7 (RFC 9562) or a ULID has in it,
// as watermill.NewULID makes them, from the message's UUID. Another UUID tells
// nothing: the zero time.
func SentInID(msg *message.Message) time.Time {
	id := msg.UUID
	switch len(id) {
	case 36:
		return timeOfUUID(id)
	case 26:
		return timeOfULID(id)
	}
	return time.Time{}
}

// SentInMetadata reads a metadata field: a time of RFC 3339, as the CloudEvents
// attribute time is, or digits, which count since 1970: 10 of them seconds, 13
// milliseconds, 16 microseconds, 19 nanoseconds. Anything else is the zero time.
func SentInMetadata(field string) func(*message.Message) time.Time {
	return func(msg *message.Message) time.Time {
		value := msg.Metadata.Get(field)
		if t, err := time.Parse(time.RFC3339, value); err == nil {
			return t
		}
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return time.Time{}
		}
		switch len(value) {
		case 10:
			return time.Unix(int64(n), 0)
		case 13:
			return time.UnixMilli(int64(n))
		case 16:
			return time.UnixMicro(int64(n))
		case 19:
			return time.Unix(0, int64(n))
		}
		return time.Time{}
	}
}

// SentInContext reads what a Pub/Sub keeps in the message's context, for Kafka:
//
//	inboxmw.SentInContext(kafka.MessageTimestampFromCtx)
//
// Where that tells nothing, it is the zero time.
func SentInContext(timestamp func(context.Context) (time.Time, bool)) func(*message.Message) time.Time {
	if timestamp == nil {
		panic("inboxmw: SentInContext needs a function")
	}
	return func(msg *message.Message) time.Time {
		t, ok := timestamp(msg.Context())
		if !ok {
			return time.Time{}
		}
		return t
	}
}

// timeOfUUID returns the time of a UUID of version 7 in its usual form.
func timeOfUUID(id string) time.Time {
	if id[8] != '-' || id[13] != '-' || id[14] != '7' || id[18] != '-' || !strings.ContainsRune("89abAB", rune(id[19])) || id[23] != '-' {
		return time.Time{}
	}
	ms, err := strconv.ParseUint(id[:8]+id[9:13], 16, 48)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}

// timeOfULID returns the time of a ULID: ten digits of Crockford's base 32.
func timeOfULID(id string) time.Time {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if id[0] > '7' { // 26 digits hold two bits more than a ULID has
		return time.Time{}
	}
	var ms int64
	for i := range len(id) {
		c := id[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		digit := strings.IndexByte(digits, c)
		if digit < 0 {
			return time.Time{}
		}
		if i < 10 {
			ms = ms<<5 | int64(digit)
		}
	}
	return time.UnixMilli(ms)
}
