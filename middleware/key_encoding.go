package inboxmw

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// The encodings of the ready parts stand in tables: changing one turns each key
// of that kind into a new one, and its redelivered messages are processed again.
//
//	the UUID itself, or ~uuid:<UUID> if it begins with "~"
//	~metadata:<field, escaped>:<value>
//	~cloudevents:<source, escaped>:<id>
//	~joined:<part, escaped>:<part, escaped>…
//	~sha256:<hex of the payload's SHA-256>
//	~hashed:<hex of the SHA-256 of the other part, with its tag>
//	~kafka:<topic, escaped>:<partition>:<offset>:<timestamp in Unix milliseconds>
//	~<kind>:<value>, from Tagged
//
// No two inputs, of one kind or of two, have one encoding. A ready part that is
// added later needs a kind that checkKind refuses today, such as one with a
// dot: a user may already have taken any other.
const (
	kindUUID        = "uuid"
	kindMetadata    = "metadata"
	kindCloudEvents = "cloudevents"
	kindJoined      = "joined"
	kindPayload     = "sha256"
	kindHashed      = "hashed"
	kindKafka       = "kafka"
)

// checkKind returns why kind cannot be that of a tagged part, if it cannot.
func checkKind(kind string) error {
	if kind == "" {
		return errors.New("the kind is empty")
	}
	for _, c := range []byte(kind) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("kind %q has other characters than a-z, 0-9 and -", kind)
		}
	}
	switch kind {
	case kindUUID, kindMetadata, kindCloudEvents, kindJoined, kindPayload, kindHashed, kindKafka:
		return fmt.Errorf("kind %q is that of a ready part", kind)
	}
	return nil
}

func encodeUUID(uuid string) string {
	if strings.HasPrefix(uuid, "~") {
		return encodeTagged(kindUUID, uuid)
	}
	return uuid
}

func encodeMetadata(field, value string) string {
	return "~" + kindMetadata + ":" + escape(field) + ":" + value
}

func encodeCloudEvents(source, id string) string {
	return "~" + kindCloudEvents + ":" + escape(source) + ":" + id
}

func encodeJoined(parts []string) string {
	var b strings.Builder
	b.WriteString("~" + kindJoined)
	for _, p := range parts {
		b.WriteByte(':')
		b.WriteString(escape(p))
	}
	return b.String()
}

func encodeDigest(kind string, sum [sha256.Size]byte) string {
	return encodeTagged(kind, hex.EncodeToString(sum[:]))
}

func encodeTagged(kind, value string) string {
	return "~" + kind + ":" + value
}

// escape frees s of colons, reversibly.
func escape(s string) string {
	if !strings.ContainsAny(s, "%:") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "%", "%25"), ":", "%3A")
}
