package inboxsql

import (
	"errors"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func TestKeyMustFitTheColumns(t *testing.T) {
	t.Parallel()
	narrow := &table{limits: map[string]int{"consumer": 10, "source": 20, "message_id": 30}}
	wide := &table{limits: map[string]int{"consumer": 4000, "source": 0, "message_id": 4000}}
	for name, c := range map[string]struct {
		table *table
		key   inbox.Key
		says  string // empty: it fits
	}{
		"what a narrow table holds":         {narrow, keyOf(10, 20, 30), ""},
		"a consumer of one byte too many":   {narrow, keyOf(11, 0, 1), "the consumer has 11 bytes and its column holds 10"},
		"a source of one byte too many":     {narrow, keyOf(1, 21, 1), "the source has 21 bytes and its column holds 20"},
		"a message id of one byte too many": {narrow, keyOf(1, 0, 31), "the message id has 31 bytes and its column holds 30"},
		"the most on a wide table":          {wide, keyOf(255, 255, 512), ""},
		"more, though the table holds it":   {wide, keyOf(256, 0, 1), "its column holds 255"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.table.fits(c.key)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, inbox.ErrInvalidKey) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "Hashed") {
				t.Errorf("got %v, want a permanent error that says %q and names Hashed", err, c.says)
			}
		})
	}
}

func keyOf(consumer, source, messageID int) inbox.Key {
	return inbox.Key{Consumer: strings.Repeat("c", consumer), Source: strings.Repeat("s", source), MessageID: strings.Repeat("m", messageID)}
}
