package inboxmw_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func kafkaRecord(partition int32, offset int64, timestamp bool) inboxmw.Part {
	return inboxmw.KafkaRecord(
		func(context.Context) (int32, bool) { return partition, true },
		func(context.Context) (int64, bool) { return offset, true },
		func(context.Context) (time.Time, bool) { return time.UnixMilli(1764547200123), timestamp },
	)
}

func TestKafkaRecord(t *testing.T) {
	t.Parallel()
	msg := message.NewMessage("", nil)
	none := func(context.Context) (int32, bool) { return 0, false }
	offset := func(context.Context) (int64, bool) { return 7, true }
	timestamp := func(context.Context) (time.Time, bool) { return time.Time{}, false }

	t.Run("a message without a partition does not carry the part", func(t *testing.T) {
		t.Parallel()
		if got, err := inboxmw.KafkaRecord(none, offset, timestamp)(msg); got != "" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("a negative partition or offset is an error", func(t *testing.T) {
		t.Parallel()
		for _, p := range []inboxmw.Part{kafkaRecord(-1, 7, true), kafkaRecord(3, -1, true)} {
			if got, err := p(msg); err == nil || !strings.Contains(err.Error(), "-1") {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
	t.Run("each of partition, offset and timestamp counts", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for _, p := range []inboxmw.Part{kafkaRecord(3, 7, true), kafkaRecord(4, 7, true), kafkaRecord(3, 8, true), kafkaRecord(3, 7, false)} {
			seen[mustPart(t, p, msg)] = true
		}
		if len(seen) != 4 {
			t.Errorf("got %v", seen)
		}
	})
	t.Run("a missing function panics at start", func(t *testing.T) {
		t.Parallel()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		inboxmw.KafkaRecord(nil, offset, timestamp)
	})
}
