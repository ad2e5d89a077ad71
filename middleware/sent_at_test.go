package inboxmw_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestSentInID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]time.Time{
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f": time.UnixMilli(1645557742000), // the example of RFC 9562
		"017F22E2-79B0-7CC3-B8C4-DC0C0C07398F": time.UnixMilli(1645557742000),
		"01ARZ3NDEKTSV4RRFFQ69G5FAV":           time.UnixMilli(1469922850259), // the example of the ULID specification
		"01arz3ndektsv4rrffq69g5fav":           time.UnixMilli(1469922850259),
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ":           time.UnixMilli(1<<48 - 1),
		"8ZZZZZZZZZZZZZZZZZZZZZZZZZ":           {}, // more than 128 bits
		"01ARZ3NDEKTSV4RRFFQ69G5FAU":           {}, // U is no digit
		"017f22e2-79b0-4cc3-98c4-dc0c0c07398f": {}, // version 4
		"017f22e2-79b0-7cc3-c8c4-dc0c0c07398f": {}, // another variant
		"017f22e2-79b0-7cc3-98c4_dc0c0c07398f": {},
		"+17f22e2-79b0-7cc3-98c4-dc0c0c07398f": {},
		"order-1":                              {},
		"":                                     {},
	} {
		if got := inboxmw.SentInID(message.NewMessage(id, nil)); !got.Equal(want) {
			t.Errorf("%q: got %s, want %s", id, got.UTC(), want.UTC())
		}
	}
	if age := time.Since(inboxmw.SentInID(message.NewMessage(watermill.NewULID(), nil))); age < 0 || age > time.Minute {
		t.Errorf("a ULID of watermill is %s old", age)
	}
	if at := inboxmw.SentInID(message.NewMessage(watermill.NewUUID(), nil)); !at.IsZero() {
		t.Errorf("a UUID without a time was sent at %s", at)
	}
}

func TestSentInMetadata(t *testing.T) {
	t.Parallel()
	read := inboxmw.SentInMetadata("sent")
	for value, want := range map[string]time.Time{
		"2026-12-01T09:00:00Z":             time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC),
		"2026-12-01T10:00:00.123456+01:00": time.Date(2026, 12, 1, 9, 0, 0, 123456000, time.UTC),
		"1764579600":                       time.Unix(1764579600, 0),
		"1764579600123":                    time.UnixMilli(1764579600123),
		"1764579600123456":                 time.UnixMicro(1764579600123456),
		"1764579600123456789":              time.Unix(0, 1764579600123456789),
		"9999999999999999999":              {}, // does not fit
		"-764579600":                       {},
		"17645796":                         {},
		"2026-12-01":                       {},
		"":                                 {},
	} {
		msg := message.NewMessage("o1", nil)
		msg.Metadata.Set("sent", value)
		if got := read(msg); !got.Equal(want) {
			t.Errorf("%q: got %s, want %s", value, got.UTC(), want.UTC())
		}
	}
	if got := read(message.NewMessage("o1", nil)); !got.IsZero() {
		t.Errorf("without the field: got %s", got)
	}
}

func TestSentInContext(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1764579600123)
	msg := message.NewMessage("o1", nil)
	for _, known := range []bool{true, false} {
		got := inboxmw.SentInContext(func(ctx context.Context) (time.Time, bool) {
			if ctx != msg.Context() {
				t.Error("it is not asked with the context of the message")
			}
			return at, known
		})(msg)
		if known != got.Equal(at) || known == got.IsZero() {
			t.Errorf("known %t: got %s", known, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("nil is no function")
		}
	}()
	inboxmw.SentInContext(nil)
}

// FuzzSentIn reads times out of anything: what it finds is a time that the text
// has room for.
func FuzzSentIn(f *testing.F) {
	for _, seed := range []string{
		"", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "ffffffff-ffff-7fff-bfff-ffffffffffff",
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "2026-12-01T09:00:00Z", "9223372036854775807", "1764579600", "+764579600",
	} {
		f.Add(seed)
	}
	read := inboxmw.SentInMetadata("sent")
	f.Fuzz(func(t *testing.T, text string) {
		msg := message.NewMessage(text, nil)
		msg.Metadata.Set("sent", text)
		if at := inboxmw.SentInID(msg); !at.IsZero() && (at.UnixMilli() < 0 || at.UnixMilli() >= 1<<48) {
			t.Errorf("%q: %s", text, at)
		}
		if at := read(msg); !at.IsZero() && (at.Year() < 0 || at.Year() > 9999) {
			t.Errorf("%q: %s", text, at)
		}
	})
}
