package inboxmw_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

const orderUUID = "6f1c2a4e-9a53-4f0d-8f0b-1f1d0c6b7a10"

func TestEncodingOfReadyPartsIsFrozen(t *testing.T) {
	t.Parallel()
	eventID := inboxmw.Metadata("event_id")
	cases := map[string]struct {
		part inboxmw.Part
		msg  *message.Message
	}{
		"uuid":                       {inboxmw.UUID, keyMessage(orderUUID, nil)},
		"uuid-with-colon":            {inboxmw.UUID, keyMessage("orders:17%", nil)},
		"uuid-with-tilde":            {inboxmw.UUID, keyMessage("~metadata:event_id:evt-17", nil)},
		"metadata":                   {eventID, keyMessage("", message.Metadata{"event_id": "evt-17"})},
		"metadata-escaped-field":     {inboxmw.Metadata("a:b%c"), keyMessage("", message.Metadata{"a:b%c": "x:y%z"})},
		"metadata-any-bytes":         {eventID, keyMessage("", message.Metadata{"event_id": "\xff\x00\"\n"})},
		"cloudevents":                {inboxmw.CloudEvents, keyMessage("", message.Metadata{"ce_id": "A234-1234-1234", "ce_source": "/shop/orders"})},
		"cloudevents-escaped-source": {inboxmw.CloudEvents, keyMessage("", message.Metadata{"ce_id": "A234:1", "ce_source": "https://shop.example/orders?q=%20"})},
		"joined-one":                 {inboxmw.Joined(fixed("a")), keyMessage("", nil)},
		"joined-a-bc":                {inboxmw.Joined(fixed("a"), fixed("bc")), keyMessage("", nil)},
		"joined-ab-c":                {inboxmw.Joined(fixed("ab"), fixed("c")), keyMessage("", nil)},
		"joined-tagged":              {inboxmw.Joined(inboxmw.Metadata("tenant"), inboxmw.Metadata("a:b")), keyMessage("", message.Metadata{"tenant": "acme", "a:b": "17"})},
		"joined-joined":              {inboxmw.Joined(inboxmw.Joined(fixed("a"), fixed("b")), fixed("c")), keyMessage("", nil)},
		"payload-hash":               {inboxmw.PayloadHash, message.NewMessage("", []byte(`{"order":"ord-1001"}`))},
		"payload-hash-empty":         {inboxmw.PayloadHash, message.NewMessage("", nil)},
		"hashed":                     {inboxmw.Hashed(eventID), keyMessage("", message.Metadata{"event_id": "evt-17"})},
		"hashed-uuid":                {inboxmw.Hashed(inboxmw.UUID), keyMessage(orderUUID, nil)},
		"tagged":                     {inboxmw.Tagged("edi-2", fixed("0000017")), keyMessage("", nil)},
		"kafka":                      {kafkaRecord(3, 4711, true), keyMessage("", nil)},
		"kafka-without-timestamp":    {kafkaRecord(0, 0, false), keyMessage("", nil)},
		"tagged-tagged":              {inboxmw.Tagged("edi-2", eventID), keyMessage("", message.Metadata{"event_id": "evt-17"})},
	}
	golden := inboxmw.ReadGolden(t, "key.golden")
	if want, got := slices.Sorted(maps.Keys(golden)), slices.Sorted(maps.Keys(cases)); !slices.Equal(want, got) {
		t.Fatalf("the file has the names\n%v, the test\n%v", want, got)
	}
	for name, c := range cases {
		want, err := strconv.Unquote(golden[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := c.part(c.msg)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestPartsAreEmptyWithoutTag(t *testing.T) {
	t.Parallel()
	msg := message.NewMessage("", []byte("payload"))
	msg.Metadata = nil
	for name, p := range map[string]inboxmw.Part{
		"the UUID":                          inboxmw.UUID,
		"a metadata field":                  inboxmw.Metadata("event_id"),
		"a CloudEvents identity":            inboxmw.CloudEvents,
		"the first of two joined parts":     inboxmw.Joined(inboxmw.UUID, fixed("a")),
		"the last of two joined parts":      inboxmw.Joined(fixed("a"), inboxmw.UUID),
		"every one of the parts to look at": inboxmw.FirstOf(inboxmw.UUID, inboxmw.CloudEvents),
		"the part to hash":                  inboxmw.Hashed(inboxmw.UUID),
		"the part to tag":                   inboxmw.Tagged("edi", inboxmw.UUID),
	} {
		t.Run("if the message lacks "+name, func(t *testing.T) {
			t.Parallel()
			if got, err := p(msg); got != "" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestPartsOfDifferentKindsNeverMeet(t *testing.T) {
	t.Parallel()
	msg := message.NewMessage("x", []byte("x"))
	for _, field := range []string{"x", "ce_id", "ce_source"} {
		msg.Metadata.Set(field, "x")
	}
	parts := map[string]inboxmw.Part{
		"metadata":    inboxmw.Metadata("x"),
		"cloudevents": inboxmw.CloudEvents,
		"joined":      inboxmw.Joined(fixed("x"), fixed("x")),
		"sha256":      inboxmw.PayloadHash,
		"hashed":      inboxmw.Hashed(fixed("x")),
		"tagged":      inboxmw.Tagged("x", fixed("x")),
	}
	for name, p := range parts {
		value := mustPart(t, p, msg)
		parts["the UUID that looks like "+name] = func(*message.Message) (string, error) {
			return inboxmw.UUID(keyMessage(value, nil))
		}
		parts["the tagged part that looks like "+name] = inboxmw.Tagged("x", fixed(value))
	}
	seen := map[string]string{}
	for name, p := range parts {
		value := mustPart(t, p, msg)
		if other, ok := seen[value]; ok {
			t.Errorf("%s and %s are both %q", name, other, value)
		}
		seen[value] = name
	}
}

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	const want = "~cloudevents:/shop:e1"
	for _, names := range [][2]string{
		{"ce_id", "ce_source"},
		{"ce-id", "ce-source"},
		{"Ce-Id", "Ce-Source"},
		{"cloudEvents:id", "cloudEvents:source"},
		{"cloudEvents_id", "cloudEvents_source"},
	} {
		id, source := names[0], names[1]
		t.Run("is found under "+id, func(t *testing.T) {
			t.Parallel()
			got, err := inboxmw.CloudEvents(keyMessage("", message.Metadata{id: "e1", source: "/shop"}))
			if err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
		t.Run("names the missing field beside "+id, func(t *testing.T) {
			t.Parallel()
			got, err := inboxmw.CloudEvents(keyMessage("", message.Metadata{id: "e1"}))
			if got != "" || err == nil || !strings.HasSuffix(err.Error(), "no "+source) {
				t.Errorf("got %q, %v", got, err)
			}
		})
		t.Run("names the missing field beside "+source, func(t *testing.T) {
			t.Parallel()
			got, err := inboxmw.CloudEvents(keyMessage("", message.Metadata{source: "/shop"}))
			if got != "" || err == nil || !strings.HasSuffix(err.Error(), "no "+id) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	t.Run("may be there in two spellings that agree", func(t *testing.T) {
		t.Parallel()
		got, err := inboxmw.CloudEvents(keyMessage("", message.Metadata{
			"ce_id": "e1", "ce_source": "/shop", "ce-id": "e1", "ce-source": "/shop",
		}))
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	})
	for _, other := range [][2]string{{"e2", "/shop"}, {"e1", "/bridge"}} {
		t.Run("is refused if another spelling says "+other[0]+" of "+other[1], func(t *testing.T) {
			t.Parallel()
			got, err := inboxmw.CloudEvents(keyMessage("", message.Metadata{
				"ce_id": "e1", "ce_source": "/shop", "ce-id": other[0], "ce-source": other[1],
			}))
			if got != "" || err == nil || !strings.Contains(err.Error(), "ce-id and ce-source") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestFirstOfTakesThePartsInOrder(t *testing.T) {
	t.Parallel()
	unreached := func(*message.Message) (string, error) {
		t.Error("asked for a part although an earlier one was there")
		return "", nil
	}
	if got := mustPart(t, inboxmw.FirstOf(fixed(""), fixed("a"), unreached), keyMessage("", nil)); got != "a" {
		t.Errorf("got %q", got)
	}
}

func TestErrorOfAPartIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	errMalformed := errors.New("malformed")
	malformed := func(*message.Message) (string, error) { return "half", errMalformed }
	for name, p := range map[string]inboxmw.Part{
		"by Joined":               inboxmw.Joined(fixed("a"), malformed),
		"by FirstOf, at its turn": inboxmw.FirstOf(fixed(""), malformed, fixed("a")),
		"by Hashed":               inboxmw.Hashed(malformed),
		"by Tagged":               inboxmw.Tagged("edi", malformed),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := p(keyMessage("", nil)); got != "" || !errors.Is(err, errMalformed) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestHashedMakesAnyIDFitAKey(t *testing.T) {
	t.Parallel()
	for name, uuid := range map[string]string{
		"that is too long":  strings.Repeat("x", inbox.MaxMessageID+1),
		"that is not UTF-8": "\xff",
		"that has a NUL":    "a\x00b",
	} {
		t.Run("one "+name, func(t *testing.T) {
			t.Parallel()
			msg := keyMessage(uuid, nil)
			key := inbox.Key{Consumer: "orders", MessageID: mustPart(t, inboxmw.UUID, msg)}
			if err := key.Validate(); !errors.Is(err, inbox.ErrInvalidKey) {
				t.Fatalf("without Hashed: %v", err)
			}
			key.MessageID = mustPart(t, inboxmw.Hashed(inboxmw.UUID), msg)
			if err := key.Validate(); err != nil {
				t.Errorf("with Hashed: %v", err)
			}
		})
	}
}

func TestPartsKeepACopyOfWhatTheyAreMadeOf(t *testing.T) {
	t.Parallel()
	for name, combine := range map[string]func(...inboxmw.Part) inboxmw.Part{
		"Joined": inboxmw.Joined, "FirstOf": inboxmw.FirstOf,
	} {
		parts := []inboxmw.Part{fixed("a"), fixed("b")}
		p := combine(parts...)
		before := mustPart(t, p, keyMessage("", nil))
		parts[0] = fixed("c")
		if after := mustPart(t, p, keyMessage("", nil)); after != before {
			t.Errorf("%s: %q became %q", name, before, after)
		}
	}
}

func TestWrongUseOfPartsPanicsAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		use  func()
		want string
	}{
		"Metadata without a field": {func() { inboxmw.Metadata("") }, "Metadata needs"},
		"Joined without parts":     {func() { inboxmw.Joined() }, "Joined needs"},
		"Joined with a nil part":   {func() { inboxmw.Joined(inboxmw.UUID, nil) }, "part 1 of Joined is nil"},
		"FirstOf without parts":    {func() { inboxmw.FirstOf() }, "FirstOf needs"},
		"FirstOf with a nil part":  {func() { inboxmw.FirstOf(nil) }, "part 0 of FirstOf is nil"},
		"Hashed with a nil part":   {func() { inboxmw.Hashed(nil) }, "part 0 of Hashed is nil"},
		"Tagged with a nil part":   {func() { inboxmw.Tagged("edi", nil) }, "part 0 of Tagged is nil"},
		"Tagged without a kind":    {func() { inboxmw.Tagged("", inboxmw.UUID) }, "kind is empty"},
		"Tagged with a colon":      {func() { inboxmw.Tagged("a:b", inboxmw.UUID) }, `kind "a:b"`},
		"Tagged with a capital":    {func() { inboxmw.Tagged("Edi", inboxmw.UUID) }, `kind "Edi"`},
		"Tagged with a dot":        {func() { inboxmw.Tagged("edi.2", inboxmw.UUID) }, `kind "edi.2"`},
		"Tagged as uuid":           {func() { inboxmw.Tagged("uuid", inboxmw.UUID) }, "ready part"},
		"Tagged as metadata":       {func() { inboxmw.Tagged("metadata", inboxmw.UUID) }, "ready part"},
		"Tagged as cloudevents":    {func() { inboxmw.Tagged("cloudevents", inboxmw.UUID) }, "ready part"},
		"Tagged as joined":         {func() { inboxmw.Tagged("joined", inboxmw.UUID) }, "ready part"},
		"Tagged as sha256":         {func() { inboxmw.Tagged("sha256", inboxmw.UUID) }, "ready part"},
		"Tagged as hashed":         {func() { inboxmw.Tagged("hashed", inboxmw.UUID) }, "ready part"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got, ok := recover().(string); !ok || !strings.HasPrefix(got, "inboxmw: ") || !strings.Contains(got, c.want) {
					t.Errorf("panicked with %q, want one that says %q", got, c.want)
				}
			}()
			c.use()
		})
	}
}

func BenchmarkPart(b *testing.B) {
	msg := keyMessage(orderUUID, message.Metadata{"tenant": "acme", "event_id": orderUUID, "ce_id": orderUUID, "ce_source": "/shop/orders"})
	for _, c := range []struct {
		name string
		part inboxmw.Part
	}{
		{"UUID", inboxmw.UUID},
		{"Metadata", inboxmw.Metadata("event_id")},
		{"CloudEvents", inboxmw.CloudEvents},
		{"Joined", inboxmw.Joined(inboxmw.Metadata("tenant"), inboxmw.UUID)},
		{"Hashed", inboxmw.Hashed(inboxmw.UUID)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.part(msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func keyMessage(uuid string, metadata message.Metadata) *message.Message {
	msg := message.NewMessage(uuid, nil)
	msg.Metadata = metadata
	return msg
}

func fixed(value string) inboxmw.Part {
	return func(*message.Message) (string, error) { return value, nil }
}

func mustPart(tb testing.TB, p inboxmw.Part, msg *message.Message) string {
	tb.Helper()
	value, err := p(msg)
	if err != nil {
		tb.Fatal(err)
	}
	return value
}
