package inboxmw

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Part makes one part of a key from a message: the message id, or its source.
//
// It returns "" and nil if the message does not carry the part, and an error if
// what it carries is malformed. It is called once per delivery, before anything
// else has touched the message, concurrently for different messages. It must not
// change the message, and must return the same for each delivery of it: no
// clock, no random number.
//
// The ready parts begin with a tag, so that what one kind of part returns is
// never what another kind returns; see [Tagged] for parts of your own. A part of
// a UUID has no tag, as that is what people look up. The encoding is frozen.
//
// The functions that make parts panic if they are used wrongly, at start-up:
// without a part, with a nil one, without a name.
type Part func(msg *message.Message) (string, error)

// UUID is the UUID of the message, as it is: the default key. A UUID that begins
// with "~" is tagged.
func UUID(msg *message.Message) (string, error) {
	return encodeUUID(msg.UUID), nil
}

// Metadata is the metadata field of this name. A field that is empty counts as
// one that is not there.
func Metadata(field string) Part {
	if field == "" {
		panic("inboxmw: Metadata needs the name of a field")
	}
	return func(msg *message.Message) (string, error) {
		value := msg.Metadata.Get(field)
		if value == "" {
			return "", nil
		}
		return encodeMetadata(field, value), nil
	}
}

// CloudEvents is the identity of a CloudEvents event in binary mode: source and
// id together, from the metadata fields of the protocol bindings: ce_id (Kafka),
// ce-id (HTTP, NATS; Ce-Id as net/http spells it), cloudEvents:id and
// cloudEvents_id (AMQP), and the same for source.
//
// The specification requires both, so one without the other is an error that
// names the field that is missing. So are two spellings that disagree, as a
// bridge leaves them that gives an event a new identity and forgets the old one.
func CloudEvents(msg *message.Message) (string, error) {
	var id, source string
	for _, field := range [...]struct{ id, source string }{
		{"ce_id", "ce_source"},
		{"ce-id", "ce-source"},
		{"Ce-Id", "Ce-Source"},
		{"cloudEvents:id", "cloudEvents:source"},
		{"cloudEvents_id", "cloudEvents_source"},
	} {
		thisID, thisSource := msg.Metadata.Get(field.id), msg.Metadata.Get(field.source)
		switch {
		case thisID == "" && thisSource == "":
			continue
		case thisSource == "":
			return "", fmt.Errorf("the message has the metadata field %s but no %s", field.id, field.source)
		case thisID == "":
			return "", fmt.Errorf("the message has the metadata field %s but no %s", field.source, field.id)
		case id != "" && (thisID != id || thisSource != source):
			return "", fmt.Errorf("the message has two CloudEvents identities: %s and %s differ from an earlier spelling", field.id, field.source)
		}
		id, source = thisID, thisSource
	}
	if id == "" {
		return "", nil
	}
	return encodeCloudEvents(source, id), nil
}

// Joined is several parts as one: ("a", "bc") and ("ab", "c") differ. If the
// message lacks any of them, the whole is empty, as what is left would be shared
// by different messages.
func Joined(parts ...Part) Part {
	parts = mustParts("Joined", parts)
	return func(msg *message.Message) (string, error) {
		values := make([]string, len(parts))
		for i, p := range parts {
			value, err := p(msg)
			if err != nil || value == "" {
				return "", err
			}
			values[i] = value
		}
		return encodeJoined(values), nil
	}
}

// PayloadHash is the SHA-256 of the payload, also of an empty one. Two messages
// with equal payloads are then the same message, whatever else they carry.
func PayloadHash(msg *message.Message) (string, error) {
	return encodeDigest(kindPayload, sha256.Sum256(msg.Payload)), nil
}

// FirstOf is the first of the parts that the message carries. An error of one
// before that ends the search: a message whose identity is malformed must not
// pass under another one.
func FirstOf(parts ...Part) Part {
	parts = mustParts("FirstOf", parts)
	return func(msg *message.Message) (string, error) {
		for _, p := range parts {
			value, err := p(msg)
			if err != nil {
				return "", err
			}
			if value != "" {
				return value, nil
			}
		}
		return "", nil
	}
}

// Hashed is the SHA-256 of another part, for ids that a column cannot hold: too
// long, or not UTF-8 without NUL. An id can then not be read from the table.
func Hashed(p Part) Part {
	mustParts("Hashed", []Part{p})
	return func(msg *message.Message) (string, error) {
		value, err := p(msg)
		if err != nil || value == "" {
			return "", err
		}
		return encodeDigest(kindHashed, sha256.Sum256([]byte(value))), nil
	}
}

// Tagged puts a tag before a part of your own, so that it never meets another
// kind of part. The kind is made of a-z, 0-9 and "-", and is none of uuid,
// metadata, cloudevents, joined, sha256, hashed and kafka; anything else panics.
func Tagged(kind string, p Part) Part {
	if err := checkKind(kind); err != nil {
		panic("inboxmw: Tagged: " + err.Error())
	}
	mustParts("Tagged", []Part{p})
	return func(msg *message.Message) (string, error) {
		value, err := p(msg)
		if err != nil || value == "" {
			return "", err
		}
		return encodeTagged(kind, value), nil
	}
}

// mustParts returns a copy, so that no one changes what keys are made of.
func mustParts(caller string, parts []Part) []Part {
	if len(parts) == 0 {
		panic("inboxmw: " + caller + " needs at least one part")
	}
	for i, p := range parts {
		if p == nil {
			panic(fmt.Sprintf("inboxmw: part %d of %s is nil", i, caller))
		}
	}
	return slices.Clone(parts)
}
