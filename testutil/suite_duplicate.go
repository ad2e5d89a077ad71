package testutil

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
)

func duplicateCases() []testCase {
	return []testCase{
		{name: "rule 6: a duplicate is answered with what was stored, and is no error", run: duplicateEntry},
		{name: "rule 6: a duplicate writes nothing", run: duplicateWritesNothing},
		{name: "rule 6: a duplicate has its times and age by the database's clock", run: duplicateAge},
	}
}

func duplicateEntry(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	d := inbox.Delivery{
		Key:         inbox.Key{Consumer: "invoices", Source: "shop", MessageID: "1"},
		EventType:   "OrderPlaced",
		Fingerprint: []byte{0, 1, 0xfe, 0xff},
		SentAt:      time.Unix(1, 0),
	}
	effect := inbox.Effect{Record: []byte("the record"), Result: []byte("the result")}
	a := deliverAs(t.Context(), in.Store, d, func(ctx context.Context) (inbox.Effect, error) {
		return effect, in.Write(ctx, "effect")
	})
	a.mustProcess(t)
	mustEqual(t, "the first delivery", a.entry, d, effect)
	// The second delivery knows less of itself than the first did.
	for range 2 {
		a = deliverAs(t.Context(), in.Again(), inbox.Delivery{Key: d.Key, EventType: "Other"}, in.writes("effect"))
		a.mustDuplicate(t)
		mustEqual(t, "the duplicate", a.entry, d, effect)
		in.mustHave(t, 1, "effect")
	}
}

func mustEqual(t *testing.T, what string, e inbox.Entry, d inbox.Delivery, effect inbox.Effect) {
	t.Helper()
	if e.Key != d.Key || e.EventType != d.EventType || !bytes.Equal(e.Fingerprint, d.Fingerprint) {
		t.Errorf("%s: got %s %q %x, want %s %q %x", what, e.Key, e.EventType, e.Fingerprint, d.Key, d.EventType, d.Fingerprint)
	}
	if !bytes.Equal(e.Record, effect.Record) || !bytes.Equal(e.Result, effect.Result) || e.Discard != effect.Discard {
		t.Errorf("%s: got record %d bytes, result %d bytes, discard %q, want %d, %d, %q",
			what, len(e.Record), len(e.Result), e.Discard, len(effect.Record), len(effect.Result), effect.Discard)
	}
}

func duplicateWritesNothing(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	first := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	first.mustDuplicate(t)
	second := deliver(t.Context(), in.Again(), keyOf("1"), in.writes("effect"))
	second.mustDuplicate(t)
	if !first.entry.ReceivedAt.Equal(second.entry.ReceivedAt) || !first.entry.ProcessedAt.Equal(second.entry.ProcessedAt) {
		t.Errorf("the times of the entry moved: %v, %v, then %v, %v",
			first.entry.ReceivedAt, first.entry.ProcessedAt, second.entry.ReceivedAt, second.entry.ProcessedAt)
	}
	in.mustHave(t, 1, "effect")
	in.mustKeep(t, 1)
}

func duplicateAge(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	a.mustDuplicate(t)
	e := a.entry
	if e.Age < 0 || e.Age > time.Hour {
		t.Errorf("got age %s", e.Age)
	}
	if e.ReceivedAt.IsZero() || e.ProcessedAt.Before(e.ReceivedAt) {
		t.Errorf("got received at %v, processed at %v", e.ReceivedAt, e.ProcessedAt)
	}
	if e.ReceivedAt.Location() != time.UTC || e.ProcessedAt.Location() != time.UTC {
		t.Errorf("got times in %v and %v, want UTC", e.ReceivedAt.Location(), e.ProcessedAt.Location())
	}
	// A session's time zone must not get into them: the clocks may differ, but
	// not by as much as two zones do.
	if off := time.Since(e.ProcessedAt).Abs(); off > 10*time.Minute {
		t.Errorf("processed at %v is %s from this machine's clock", e.ProcessedAt, off)
	}
	later := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	later.mustDuplicate(t)
	if later.entry.Age < e.Age {
		t.Errorf("the age went from %s to %s", e.Age, later.entry.Age)
	}
}
