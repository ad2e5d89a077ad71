package testutil

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func keyCases() []testCase {
	return []testCase{
		{name: "rule 1: consumer and source are parts of the key", run: keyParts},
		{name: "rule 2: an empty, overlong or unstorable key is refused before any SQL, for good", run: keyRefused},
		{name: "rule 3: ids are compared byte for byte, whatever the database folds", run: keyBytes},
		{name: "rule 3: parts of the greatest length are kept whole", run: keyLongest},
		{name: "rule 3: what stands in a key is a value, never SQL", run: keyQuoted},
	}
}

func keyParts(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	keys := []inbox.Key{
		{Consumer: "invoices", MessageID: "1"},
		{Consumer: "stock", MessageID: "1"},
		{Consumer: "invoices", Source: "shop", MessageID: "1"},
		{Consumer: "invoices", Source: "shop/1", MessageID: "1"},
		{Consumer: "invoices/shop", MessageID: "1"},
		{Consumer: "invoices", Source: "1", MessageID: "shop"},
	}
	allDiffer(t, in, keys)
}

func keyRefused(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for name, key := range map[string]inbox.Key{
		"empty consumer":         {MessageID: "1"},
		"empty id":               {Consumer: "invoices"},
		"overlong consumer":      {Consumer: strings.Repeat("c", inbox.MaxConsumer+1), MessageID: "1"},
		"overlong source":        {Consumer: "invoices", Source: strings.Repeat("s", inbox.MaxSource+1), MessageID: "1"},
		"overlong id":            {Consumer: "invoices", MessageID: strings.Repeat("i", inbox.MaxMessageID+1)},
		"id of too many bytes":   {Consumer: "invoices", MessageID: strings.Repeat("é", inbox.MaxMessageID/2) + "e"},
		"NUL in the id":          {Consumer: "invoices", MessageID: "a\x00b"},
		"NUL in the consumer":    {Consumer: "invoices\x00", MessageID: "1"},
		"id of invalid UTF-8":    {Consumer: "invoices", MessageID: "\xff\xfe"},
		"source of a cut letter": {Consumer: "invoices", Source: "caf\xc3", MessageID: "1"},
	} {
		// A context that is done shows that the database was not asked.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		a := deliver(ctx, in.Store, key, in.writes("refused"))
		a.mustFail(t, inbox.ErrInvalidKey)
		var refused *inbox.KeyError
		if a.ran || (!inbox.Permanent(a.err) && errors.As(a.err, &refused) && refused.Part != "consumer") {
			t.Errorf("%s: got %s, want a permanent error and no handler", name, a)
		}
		if !errors.As(a.err, &refused) || refused.Reason == "" {
			t.Errorf("%s: error %q does not say why", name, a.err)
		}
	}
	in.mustHave(t, 0, "refused")
	in.mustKeep(t, 0)
}

func keyBytes(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	ids := []string{
		"order", "Order", "ORDER", "order ", " order", "order  ", "order\t", "order\n", "order\r\n",
		"caf\u00e9", "cafe\u0301", "cafe", "CAFÉ", "stra\u00dfe", "strasse",
		"\u212b", "\u00c5", "A\u030a", "\ufb01x", "fix", "i", "I", "\u0131", "\u0130",
		"7", "07", "7.0", "7e0", "0x7", "\u0667", "-0", "0", "null", "NULL", "true",
		"a\u200bb", "ab", "a\u00adb", "\ufeffab", "😀", "😁", "%", "_", "*", "\x01", "\x7f",
	}
	keys := make([]inbox.Key, 0, 3*len(ids))
	for _, id := range ids {
		keys = append(keys, keyOf(id),
			inbox.Key{Consumer: "invoices", Source: id, MessageID: "id"},
			inbox.Key{Consumer: "c" + id, MessageID: "id"})
	}
	allDiffer(t, in, keys)
}

func keyLongest(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	longest := func(most int, last string) string { return strings.Repeat("x", most-len(last)) + last }
	lasts := []string{"", "y", "z", "\u00e9", " "}
	keys := make([]inbox.Key, 0, 3*len(lasts)+2)
	for _, last := range lasts {
		keys = append(keys,
			keyOf(longest(inbox.MaxMessageID, last)),
			inbox.Key{Consumer: longest(inbox.MaxConsumer, last), MessageID: "1"},
			inbox.Key{Consumer: "invoices", Source: longest(inbox.MaxSource, last), MessageID: "1"},
		)
	}
	// The longest of all at once, each byte different from its neighbour.
	keys = append(keys,
		inbox.Key{Consumer: varied(inbox.MaxConsumer), Source: varied(inbox.MaxSource), MessageID: varied(inbox.MaxMessageID)},
		keyOf(longest(inbox.MaxMessageID, "")[1:]),
	)
	allDiffer(t, in, keys)
}

func keyQuoted(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	texts := []string{`'`, `''`, `\`, `\'`, `"`, "`", `'; ROLLBACK; --`, `$1`, `?`, `:id`, `{table}`, `%s`, `/*`, `--`}
	keys := make([]inbox.Key, 0, 2*len(texts))
	for _, text := range texts {
		keys = append(keys, keyOf(text), inbox.Key{Consumer: text, Source: text, MessageID: text})
	}
	allDiffer(t, in, keys)
}

// allDiffer delivers each of keys twice: a key must be new, whatever came before
// it, and be known afterwards.
func allDiffer(t *testing.T, in *Instance, keys []inbox.Key) {
	t.Helper()
	seen := map[inbox.Key]bool{}
	for i, key := range keys {
		if seen[key] {
			t.Fatalf("the case has key %s twice", key)
		}
		seen[key] = true
		id := fmt.Sprintf("effect %d", i)
		a := deliver(t.Context(), in.Store, key, in.writes(id))
		if a.err != nil || a.duplicate {
			t.Fatalf("key %s (%q): got %s, want a first delivery: no other key is equal", key, key.MessageID, a)
		}
	}
	for i, key := range keys {
		a := deliver(t.Context(), in.Store, key, in.writes(fmt.Sprintf("effect %d", i)))
		a.mustDuplicate(t)
		if a.entry.Key != key {
			t.Errorf("got the entry of %s for %s", a.entry.Key, key)
		}
		in.mustHave(t, 1, fmt.Sprintf("effect %d", i))
	}
	in.mustKeep(t, len(keys))
}

func varied(length int) string {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte('!' + i%90)
	}
	return string(b)
}
