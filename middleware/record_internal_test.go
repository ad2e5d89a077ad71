package inboxmw

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

func TestRecordVersion1IsFrozen(t *testing.T) {
	t.Parallel()
	anyByte := make([]byte, 256)
	for i := range anyByte {
		anyByte[i] = byte(i)
	}
	cases := map[string][]produced{
		"invoice": {recorded("", "invoices", "6f1c2a4e-9a53-4f0d-8f0b-1f1d0c6b7a10",
			message.Metadata{"name": "InvoiceIssued", "correlation_id": "ord-1001"}, `{"order":"ord-1001","total":4990}`)},
		"bare":   {recorded("", "", "", nil, "")},
		"binary": {recorded("", "t", "~\xff\x00", message.Metadata{"": "\xfe", "\xff": ""}, string(anyByte))},
		"publishers": {
			recorded("events", "orders.events", "a", nil, "1"),
			recorded("", "invoices", "b", nil, "2"),
			recorded("audit", "audit", "c", nil, "3"),
		},
		"long": {recorded("", "t", strings.Repeat("u", 200), nil, strings.Repeat("p", 300))},
	}
	golden := ReadGolden(t, "record_v1.golden")
	if want, got := slices.Sorted(maps.Keys(golden)), slices.Sorted(maps.Keys(cases)); !slices.Equal(want, got) {
		t.Fatalf("the file has the names\n%v, the test\n%v", want, got)
	}
	for name, ms := range cases {
		record, err := hex.DecodeString(golden[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := encodeRecord(ms); !bytes.Equal(got, record) {
			t.Errorf("%s: is written as %x, not as in the file", name, got)
		}
		got, err := decodeRecord(record)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := recordDiff(ms, got); diff != "" {
			t.Errorf("%s: is read with %s", name, diff)
		}
	}
}

func TestRecordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	many := message.Metadata{}
	for i := range 2 * mostPresized {
		many[fmt.Sprint("key", i)] = fmt.Sprint("value", i)
	}
	for name, ms := range map[string][]produced{
		"without metadata":                         {recorded("", "t", "a", nil, "p")},
		"with empty metadata":                      {recorded("", "t", "a", message.Metadata{}, "p")},
		"with much metadata":                       {recorded("", "t", "a", many, "p")},
		"with empty keys and values":               {recorded("", "t", "a", message.Metadata{"": "", "k": ""}, "p")},
		"without payload":                          {recorded("", "t", "a", nil, "")},
		"with a binary payload":                    {recorded("", "t", "a", nil, "\x00\xff\xfe\n\r")},
		"with a payload of 1 MiB":                  {recorded("", "t", "a", nil, strings.Repeat("p", 1<<20))},
		"with a UUID of unusual bytes":             {recorded("", "t", "\x00\xff: %\n", nil, "p")},
		"with a UUID of 100,000 bytes":             {recorded("", "t", strings.Repeat("u", 100_000), nil, "p")},
		"with publishers and topics":               {recorded("events", "a", "1", nil, "p"), recorded("", "b", "2", nil, "p")},
		"with more messages than a byte can count": slices.Repeat([]produced{recorded("", "t", "a", nil, "p")}, 300),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := encodeRecord(ms)
			if len(record) != recordSize(ms) {
				t.Errorf("has %d bytes, was expected to have %d", len(record), recordSize(ms))
			}
			got, err := decodeRecord(record)
			if err != nil {
				t.Fatal(err)
			}
			if diff := recordDiff(ms, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecordOfNoMessagesIsNil(t *testing.T) {
	t.Parallel()
	if b := encodeRecord([]produced{}); b != nil {
		t.Errorf("is written as %x", b)
	}
	for _, b := range [][]byte{nil, {}} {
		if ms, err := decodeRecord(b); ms != nil || err != nil {
			t.Errorf("is read as %v, %v", ms, err)
		}
	}
}

func TestMessagesOfARecordAreTheirOwn(t *testing.T) {
	t.Parallel()
	record := encodeRecord([]produced{recorded("", "t", "a", nil, "payload")})
	first, err := decodeRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	second, err := decodeRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	first[0].msg.Metadata.Set("k", "v")
	copy(first[0].msg.Payload, "changed")
	clear(record)
	if diff := recordDiff([]produced{recorded("", "t", "a", nil, "payload")}, second); diff != "" {
		t.Errorf("a change of one shows in the other: %s", diff)
	}
	if !first[0].msg.Ack() || !second[0].msg.Nack() {
		t.Error("a message cannot be settled")
	}
}

func TestUnreadableRecordIsAnError(t *testing.T) {
	t.Parallel()
	const secret = "payload-4711"
	whole := encodeRecord([]produced{
		recorded("", "t", "a", message.Metadata{"k": "v"}, secret),
		recorded("events", "u", "b", nil, secret),
	})
	huge := binary.AppendUvarint(nil, 1<<62)
	cases := map[string][]byte{
		"with a byte left over":                     append(slices.Clone(whole), 0),
		"that ends after the version":               {recordVersion},
		"with a count that does not end":            {recordVersion, 0xff},
		"with a count beyond 64 bits":               append([]byte{recordVersion}, bytes.Repeat([]byte{0xff}, 11)...),
		"with a huge number of messages":            append([]byte{recordVersion}, huge...),
		"with a huge length":                        slices.Concat([]byte{recordVersion, 1}, huge, make([]byte, 100)),
		"with a huge number of metadata pairs":      slices.Concat([]byte{recordVersion, 1, 0, 0, 0}, huge, make([]byte, 100)),
		"with more messages than there is room for": slices.Concat([]byte{recordVersion, 3}, make([]byte, 14)),
		"with a metadata key twice":                 {recordVersion, 1, 0, 0, 0, 2, 1, 'k', 0, 1, 'k', 0, 0},
		"with metadata out of order":                {recordVersion, 1, 0, 0, 0, 2, 1, 'l', 0, 1, 'k', 0, 0},
	}
	for i := 1; i < len(whole); i++ {
		cases[fmt.Sprintf("cut after %d bytes", i)] = whole[:i]
	}
	for name, record := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms, err := decodeRecord(record)
			if ms != nil || !errors.Is(err, inbox.ErrRecord) {
				t.Fatalf("got %d messages, %v", len(ms), err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a payload: %v", err)
			}
		})
	}
}

func TestUnknownRecordVersionIsNamed(t *testing.T) {
	t.Parallel()
	record := encodeRecord([]produced{recorded("", "t", "a", nil, "p")})
	for _, version := range []byte{0, 2, 255} {
		record[0] = version
		ms, err := decodeRecord(record)
		if ms != nil || !errors.Is(err, inbox.ErrRecord) || !strings.Contains(err.Error(), fmt.Sprintf("version %d,", version)) {
			t.Errorf("version %d: got %v, %v", version, ms, err)
		}
	}
}

//nolint:paralleltest // AllocsPerRun counts the allocations of the whole process
func TestEncodingARecordAllocatesOnce(t *testing.T) {
	ms := oneKiB()
	if n := testing.AllocsPerRun(100, func() { encodeRecord(ms) }); n != 1 {
		t.Errorf("allocates %v times", n)
	}
}

func BenchmarkEncodeRecord(b *testing.B) {
	ms := oneKiB()
	b.ReportAllocs()
	for b.Loop() {
		encodeRecord(ms)
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	record := encodeRecord(oneKiB())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeRecord(record); err != nil {
			b.Fatal(err)
		}
	}
}

func oneKiB() []produced {
	return []produced{recorded("", "invoices", "6f1c2a4e-9a53-4f0d-8f0b-1f1d0c6b7a10",
		message.Metadata{"name": "InvoiceIssued", "correlation_id": "ord-1001"}, strings.Repeat("p", 1024))}
}

func recorded(publisher, topic, uuid string, metadata message.Metadata, payload string) produced {
	msg := message.NewMessage(uuid, []byte(payload))
	msg.Metadata = metadata
	return produced{publisher: publisher, topic: topic, msg: msg}
}

// recordDiff says where got is not want. Metadata may be empty instead of nil.
func recordDiff(want, got []produced) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d messages instead of %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		switch {
		case g.publisher != w.publisher || g.topic != w.topic:
			return fmt.Sprintf("message %d for %q, %q instead of %q, %q", i, g.publisher, g.topic, w.publisher, w.topic)
		case g.msg.UUID != w.msg.UUID:
			return fmt.Sprintf("message %d with another UUID", i)
		case g.msg.Metadata == nil || !maps.Equal(g.msg.Metadata, w.msg.Metadata):
			return fmt.Sprintf("message %d with metadata %#v instead of %#v", i, g.msg.Metadata, w.msg.Metadata)
		case !bytes.Equal(g.msg.Payload, w.msg.Payload):
			return fmt.Sprintf("message %d with another payload", i)
		}
	}
	return ""
}
