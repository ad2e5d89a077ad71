package inboxmw

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// produced is one message of a record.
type produced struct {
	publisher string // the name it has in the inbox; empty for the router's own
	topic     string
	msg       *message.Message
}

// recordVersion is the first byte of a record. Records are read as long as their
// keys are kept, so a version once released is read for ever:
//
//	version  1 byte
//	count    uvarint, then for each message
//	  publisher, topic, uuid         text
//	  pairs  uvarint, then for each  key, value text; ascending keys
//	  payload                        text
//
// where text is its length as uvarint, and its bytes.
const recordVersion = 1

// The fewest bytes that a message and a metadata pair take, each text empty.
const (
	leastMessage = 5
	leastPair    = 2
)

// mostPresized bounds the map that is made for the pairs that a record claims to
// have: a pair takes far more memory there than in the record.
const mostPresized = 64

// encodeRecord returns the record of ms, or nil if there are none. Equal messages
// have equal records. No message may be nil.
func encodeRecord(ms []produced) []byte {
	if len(ms) == 0 {
		return nil
	}
	b := make([]byte, 0, recordSize(ms))
	b = append(b, recordVersion)
	b = binary.AppendUvarint(b, uint64(len(ms)))
	var stack [16]string
	for _, p := range ms {
		b = appendText(b, p.publisher)
		b = appendText(b, p.topic)
		b = appendText(b, p.msg.UUID)
		b = binary.AppendUvarint(b, uint64(len(p.msg.Metadata)))
		keys := stack[:0]
		for k := range p.msg.Metadata {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			b = appendText(b, k)
			b = appendText(b, p.msg.Metadata[k])
		}
		b = appendText(b, p.msg.Payload)
	}
	return b
}

// decodeRecord returns the messages of a record: new ones, which share no memory
// with b. Of an empty record there are none. A record that this version cannot
// read, whole, is [inbox.ErrRecord].
func decodeRecord(b []byte) ([]produced, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[0] != recordVersion {
		return nil, fmt.Errorf("%w: it has version %d, this release reads version %d: was it written by a later one?", inbox.ErrRecord, b[0], recordVersion)
	}
	r := recordReader{left: b[1:]}
	count := r.count(leastMessage)
	ms := make([]produced, 0, count)
	for len(ms) < count && r.broken == "" {
		ms = append(ms, r.message())
	}
	switch {
	case r.broken != "":
		return nil, fmt.Errorf("%w: it is damaged: %s, in %d bytes", inbox.ErrRecord, r.broken, len(b))
	case len(r.left) > 0:
		return nil, fmt.Errorf("%w: it is damaged: %d of %d bytes are left over", inbox.ErrRecord, len(r.left), len(b))
	}
	return ms, nil
}

func recordSize(ms []produced) int {
	n := 1 + uvarintSize(len(ms))
	for _, p := range ms {
		n += textSize(len(p.publisher)) + textSize(len(p.topic)) + textSize(len(p.msg.UUID))
		n += uvarintSize(len(p.msg.Metadata))
		for k, v := range p.msg.Metadata {
			n += textSize(len(k)) + textSize(len(v))
		}
		n += textSize(len(p.msg.Payload))
	}
	return n
}

func textSize(n int) int { return uvarintSize(n) + n }

func uvarintSize(n int) int { return (bits.Len(uint(n)|1) + 6) / 7 }

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// recordReader takes a record apart. Once it is broken it reads zero values.
type recordReader struct {
	left   []byte
	broken string // what is wrong; empty so far
}

func (r *recordReader) message() produced {
	p := produced{publisher: r.text(), topic: r.text()}
	uuid := r.text()
	pairs := r.count(leastPair)
	metadata := make(message.Metadata, min(pairs, mostPresized))
	last := ""
	for i := 0; i < pairs && r.broken == ""; i++ {
		key := r.text()
		if i > 0 && key <= last {
			r.fail("metadata is out of order")
		}
		metadata[key], last = r.text(), key
	}
	p.msg = message.NewMessage(uuid, bytes.Clone(r.bytes()))
	p.msg.Metadata = metadata
	return p
}

func (r *recordReader) text() string { return string(r.bytes()) }

// bytes returns a text, which shares memory with the record.
func (r *recordReader) bytes() []byte {
	n := r.count(1)
	b := r.left[:n:n]
	r.left = r.left[n:]
	return b
}

// count reads the number of things of so many bytes at least. It is no more than
// there is room for in what is left, so that garbage cannot ask for memory.
func (r *recordReader) count(least uint64) int {
	n, size := binary.Uvarint(r.left)
	if size <= 0 {
		r.fail("it ends too early")
		return 0
	}
	r.left = r.left[size:]
	if n > uint64(len(r.left))/least {
		r.fail("a length is more than what is left")
		return 0
	}
	return int(n) //nolint:gosec // not above the length of a slice
}

func (r *recordReader) fail(what string) {
	if r.broken == "" {
		r.broken = what
	}
	r.left = nil
}
