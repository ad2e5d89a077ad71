package inbox

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest parts of a [Key], in bytes. A table whose columns are narrower
// lowers them; longer columns do not raise them, so that a message accepted on
// one database is accepted on each.
const (
	MaxConsumer  = 255
	MaxSource    = 255
	MaxMessageID = 512
)

// Key identifies a message for one consumer. Two deliveries with equal keys are
// the same message: the second is a duplicate. Keys are compared byte for byte;
// letter case, blanks and Unicode forms are never merged.
type Key struct {
	// Consumer is the name under which the key is unique, by default the name of
	// the router's handler. Never empty.
	Consumer string

	// Source is the space within which MessageID is unique: an upstream service,
	// a trading partner. Empty where message ids are unique on their own.
	Source string

	// MessageID identifies the message within Source. Never empty.
	MessageID string
}

// String formats the key for logs and errors, as consumer/id or
// consumer/source/id, each part quoted where it needs to be.
func (k Key) String() string {
	if k.Source == "" {
		return printable(k.Consumer) + "/" + printable(k.MessageID)
	}
	return printable(k.Consumer) + "/" + printable(k.Source) + "/" + printable(k.MessageID)
}

// Validate returns a [*KeyError] if a part
// that must not be empty is, if a part is longer than [MaxConsumer], [MaxSource]
// or [MaxMessageID], or if it is not valid UTF-8 without NUL, which PostgreSQL
// cannot hold. It names the remedy. A valid key yields nil.
func (k Key) Validate() error {
	switch {
	case k.Consumer == "":
		return k.invalid(partConsumer, "the consumer is empty: run the middleware in a router, or name the consumer")
	case k.MessageID == "":
		return k.invalid(partMessageID, "the message id is empty: let the producer set one, or choose another key (Metadata, CloudEvents, Joined, PayloadHash, FirstOf)")
	}
	for _, p := range [...]struct {
		name, value string
		limit       int
	}{
		{partConsumer, k.Consumer, MaxConsumer},
		{partSource, k.Source, MaxSource},
		{partMessageID, k.MessageID, MaxMessageID},
	} {
		if len(p.value) > p.limit {
			return k.invalid(p.name, fmt.Sprintf("the %s has %d bytes and the most is %d: %s", p.name, len(p.value), p.limit, remedy(p.name)))
		}
		if !utf8.ValidString(p.value) || strings.IndexByte(p.value, 0) >= 0 {
			return k.invalid(p.name, fmt.Sprintf("the %s is not valid UTF-8 without NUL: %s", p.name, remedy(p.name)))
		}
	}
	return nil
}

// remedy is for a part that cannot be stored.
func remedy(part string) string {
	if part == partConsumer {
		return "name the handler otherwise, or set its Consumer"
	}
	return "use Hashed"
}

func (k Key) invalid(part, reason string) error {
	return &KeyError{Key: k, Part: part, Reason: reason}
}

// printable returns s as it is if it can be read in a log line, else quoted and
// cut: an id is the producer's, and may be anything of any length.
func printable(s string) string {
	const most = 128
	cut := ""
	if len(s) > most {
		s, cut = s[:most], "…"
	}
	for _, r := range s {
		if r == utf8.RuneError || r == ' ' || r == '"' || !unicode.IsPrint(r) {
			return fmt.Sprintf("%q", s) + cut
		}
	}
	if s == "" {
		return `""`
	}
	return s + cut
}
