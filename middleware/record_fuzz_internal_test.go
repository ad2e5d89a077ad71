package inboxmw

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
)

// FuzzRecord checks that no bytes make the decoder panic, and that what it reads
// is what is written again.
func FuzzRecord(f *testing.F) {
	for _, value := range ReadGolden(f, "record_v1.golden") {
		record, err := hex.DecodeString(value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record)
		f.Add(record[:len(record)/2])
		f.Add(append(record, 0))
	}
	f.Add([]byte{})
	f.Add([]byte{recordVersion, 0})
	f.Add([]byte{recordVersion, 1, 0, 0, 0, 2, 1, 'l', 0, 1, 'k', 0, 0})
	f.Add([]byte{recordVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{recordVersion + 1, 1, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		ms, err := decodeRecord(b)
		if err != nil {
			if ms != nil || !errors.Is(err, inbox.ErrRecord) {
				t.Fatalf("got %d messages, %v", len(ms), err)
			}
			return
		}
		record := encodeRecord(ms)
		again, err := decodeRecord(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := recordDiff(ms, again); diff != "" {
			t.Fatal(diff)
		}
		if !bytes.Equal(encodeRecord(again), record) {
			t.Fatal("one record is written in two ways")
		}
	})
}

// FuzzRecordRoundTrip checks that any messages come back as they were.
func FuzzRecordRoundTrip(f *testing.F) {
	f.Add("", "invoices", "6f1c2a4e-9a53-4f0d-8f0b-1f1d0c6b7a10", "name", "InvoiceIssued", []byte(`{"order":"ord-1001"}`), uint8(1))
	f.Add("events", "", "", "", "", []byte{}, uint8(2))
	f.Add("\xff", "\x00", "~\xff", "\xff", "\x00", []byte{0, 255}, uint8(200))
	f.Fuzz(func(t *testing.T, publisher, topic, uuid, key, value string, payload []byte, count uint8) {
		ms := make([]produced, count)
		for i := range ms {
			msg := message.NewMessage(uuid, payload)
			switch i % 3 {
			case 0:
				msg.Metadata = message.Metadata{key: value, value: key, key + value: ""}
			case 1:
				msg.Metadata = nil
			}
			ms[i] = produced{publisher: publisher, topic: topic, msg: msg}
		}
		got, err := decodeRecord(encodeRecord(ms))
		if err != nil {
			t.Fatal(err)
		}
		if diff := recordDiff(ms, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
