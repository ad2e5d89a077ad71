package testutil

import (
	"context"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func discardCases() []testCase {
	return []testCase{
		{name: "rule 14: a discarded delivery keeps its key and the reason, and undoes its effects", run: discardKeepsKey},
		{name: "rule 14: a discarded delivery keeps neither record nor result", run: discardKeepsNoRecord},
		{name: "rule 14: of a discard and another delivery at once, one decides", run: discardRace},
		{name: "rule 14: any reason can be kept", run: discardReasons},
	}
}

func discards(h handler, reason string) handler {
	return func(ctx context.Context) (inbox.Effect, error) {
		effect, err := h(ctx)
		effect.Discard = reason
		return effect, err
	}
}

func discardKeepsKey(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	d := inbox.Delivery{Key: keyOf("1"), EventType: "OrderPlaced", Fingerprint: []byte("print")}
	a := deliverAs(t.Context(), in.Store, d, discards(in.writes("effect"), "unknown customer"))
	a.mustProcess(t)
	if a.entry.Discard != "unknown customer" {
		t.Errorf("got discard %q", a.entry.Discard)
	}
	in.mustHave(t, 0, "effect")
	in.mustKeep(t, 1)
	b := deliver(t.Context(), in.Again(), keyOf("1"), in.writes("effect"))
	b.mustDuplicate(t)
	mustEqual(t, "the duplicate", b.entry, d, inbox.Effect{Discard: "unknown customer"})
	in.mustHave(t, 0, "effect")
}

func discardKeepsNoRecord(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
		return inbox.Effect{Record: []byte("record"), Result: []byte("result"), Discard: "no"}, in.Write(ctx, "effect")
	}).mustProcess(t)
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	a.mustDuplicate(t)
	mustEqual(t, "the duplicate", a.entry, inbox.Delivery{Key: keyOf("1")}, inbox.Effect{Discard: "no"})
}

// discardRace has a second delivery that waits while the first one discards: it
// gets the key between the rollback and the second transaction, or after it.
func discardRace(t *testing.T, h Harness) {
	for range rounds {
		in := h.open(t, Options{})
		a, b := waiting(t, in, discards(in.writes("first"), "no"), in.writes("second"))
		if a.err != nil || b.err != nil {
			t.Fatalf("got %s, and %s", a, b)
		}
		c := deliver(t.Context(), in.Store, keyOf("1"), in.writes("third"))
		c.mustDuplicate(t)
		in.mustHave(t, 0, "first")
		in.mustKeep(t, 1)
		if b.duplicate {
			if a.duplicate || b.entry.Discard != "no" || c.entry.Discard != "no" {
				t.Errorf("the discard came first: got %s, and %s with discard %q, then %q", a, b, b.entry.Discard, c.entry.Discard)
			}
			in.mustHave(t, 0, "second")
			continue
		}
		if !a.duplicate || a.entry.Discard != "" || c.entry.Discard != "" {
			t.Errorf("the other delivery came first: got %s with discard %q, and %s, then discard %q", a, a.entry.Discard, b, c.entry.Discard)
		}
		in.mustHave(t, 1, "second")
	}
}

func discardReasons(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for _, reason := range []string{
		"discarded: again", "'; --", "für 5 €", "a\nb", strings.Repeat("x", 1000), strings.Repeat("é", 2000), "NUL \x00 and \xff",
	} {
		key := keyOf("key of " + strings.ToValidUTF8(strings.ReplaceAll(reason[:min(8, len(reason))], "\x00", ""), ""))
		deliver(t.Context(), in.Store, key, discards(in.writes("effect"), reason)).mustProcess(t)
		a := deliver(t.Context(), in.Store, key, in.writes("effect"))
		a.mustDuplicate(t)
		switch {
		case a.entry.Discard == "":
			t.Errorf("reason %q is gone", reason)
		case len(reason) <= 1000 && strings.ToValidUTF8(reason, "") == reason && !strings.Contains(reason, "\x00") && a.entry.Discard != reason:
			t.Errorf("got reason %q, want %q", a.entry.Discard, reason)
		}
	}
	in.mustHave(t, 0, "effect")
}
