package inboxmw

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/watermill-inbox/inbox"
)

// Fingerprint says whether the SHA-256 of the payload is kept with the key, and
// what follows if a duplicate has another one: two different messages under one
// key, of which the second would be lost without a word. Producers that reuse
// ids do that, and keys that leave out a part.
type Fingerprint string

const (
	// FingerprintOff keeps none and compares none.
	FingerprintOff Fingerprint = "off"

	// FingerprintWarn logs the difference as an error, sets Event.Mismatch, and
	// treats the message as the duplicate that its key says it is.
	FingerprintWarn Fingerprint = "warn"

	// FingerprintFail also fails the message with [inbox.ErrMismatch], which is
	// permanent: it belongs into a poison queue. Choose it only if producers send
	// the same bytes again; one that marshals anew may reorder fields.
	FingerprintFail Fingerprint = "fail"
)

func (f Fingerprint) validate(field string) error {
	switch f {
	case "", FingerprintOff, FingerprintWarn, FingerprintFail:
		return nil
	}
	return fmt.Errorf("%s.Fingerprint is %q; it is FingerprintOff, FingerprintWarn or FingerprintFail", field, string(f))
}

// of returns the fingerprint of a payload, nil if none is kept.
func (f Fingerprint) of(payload []byte) []byte {
	if f != FingerprintWarn && f != FingerprintFail {
		return nil
	}
	sum := sha256.Sum256(payload)
	return sum[:]
}

// mismatch reports whether a duplicate has other content than the first delivery,
// as far as both have a fingerprint.
func mismatch(first, duplicate []byte) bool {
	return len(first) > 0 && len(duplicate) > 0 && !bytes.Equal(first, duplicate)
}

// mismatched is a duplicate in name only.
type mismatched struct{ key inbox.Key }

func (e mismatched) Error() string {
	return fmt.Sprintf("%v: %s; was an id used twice, or does the key lack a part?", inbox.ErrMismatch, e.key)
}

func (e mismatched) Is(target error) bool { return target == inbox.ErrMismatch }

func (e mismatched) Permanent() bool { return true }
