package inboxmw_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// FuzzKeyPart checks that no two inputs, of one kind of part or of two, have one
// encoding: kind and values can be read back from it.
func FuzzKeyPart(f *testing.F) {
	seeds := []string{
		"", "a", "ab", ":", "%", "%3A", "%25", "%253A", "~", "~uuid:a", "~metadata:a:b", "~joined:a:b", "a:b", "a%", "\xff", "\x00", "é",
	}
	for kind := range uint8(5) {
		for i, a := range seeds {
			f.Add(kind, a, seeds[(i+5)%len(seeds)], seeds[(i+9)%len(seeds)])
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, a, b, c string) {
		msg := keyMessage(a, message.Metadata{"ce_source": a, "ce_id": b})
		var p inboxmw.Part
		var name string
		var values []string
		switch kind % 5 {
		case 0:
			p, name, values = inboxmw.UUID, "uuid", []string{a}
		case 1:
			if a == "" {
				t.Skip("Metadata refuses an empty name")
			}
			msg.Metadata = message.Metadata{a: b}
			p, name, values = inboxmw.Metadata(a), "metadata", []string{a, b}
		case 2:
			if (a == "") != (b == "") {
				t.Skip("CloudEvents refuses one without the other")
			}
			p, name, values = inboxmw.CloudEvents, "cloudevents", []string{a, b}
		case 3:
			p, name, values = inboxmw.Joined(fixed(a), fixed(b), fixed(c)), "joined", []string{a, b, c}
		case 4:
			p, name, values = inboxmw.Tagged("edi", fixed(a)), "edi", []string{a}
		}
		encoded := mustPart(t, p, msg)
		if name != "metadata" && slices.Contains(values, "") || name == "metadata" && b == "" {
			if encoded != "" {
				t.Fatalf("%s of %q is %q, although a part is empty", name, values, encoded)
			}
			return
		}
		gotName, gotValues := decodeKeyPart(encoded)
		if gotName != name || !slices.Equal(gotValues, values) {
			t.Fatalf("%s of %q is %q, which reads as %s of %q", name, values, encoded, gotName, gotValues)
		}
	})
}

func decodeKeyPart(encoded string) (kind string, values []string) {
	tagged, ok := strings.CutPrefix(encoded, "~")
	if !ok {
		return "uuid", []string{encoded}
	}
	kind, rest, _ := strings.Cut(tagged, ":")
	switch kind {
	case "metadata", "cloudevents":
		first, second, _ := strings.Cut(rest, ":")
		return kind, []string{unescapeKeyPart(first), second}
	case "joined":
		for value := range strings.SplitSeq(rest, ":") {
			values = append(values, unescapeKeyPart(value))
		}
		return kind, values
	default:
		return kind, []string{rest}
	}
}

func unescapeKeyPart(s string) string {
	return strings.NewReplacer("%3A", ":", "%25", "%").Replace(s)
}
