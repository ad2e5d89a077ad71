package inboxmw_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// secret stands for what no log, error or event may have. It is JSON, as an error of
// a parser would quote it.
const secret = `{"iban":"DE02120300000000202051"}` //nolint:gosec // of nobody

// TestNoPayloadIsTold lets deliveries end in each way, with a secret wherever a
// payload or a value can be, and looks at all that is told.
func TestNoPayloadIsTold(t *testing.T) {
	t.Parallel()
	all := append(ways(),
		way{name: "it succeeds"},
		way{name: "it is a duplicate with other content", handler: inboxmw.Handler{Fingerprint: inboxmw.FingerprintFail}, prepare: func(f *fixture) {
			f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1"), Fingerprint: []byte("another")}})
		}},
		way{name: "it is a duplicate with other content, and passes", handler: inboxmw.Handler{Fingerprint: inboxmw.FingerprintWarn}, prepare: func(f *fixture) {
			f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1"), Fingerprint: []byte("another")}})
		}},
		way{name: "it is a duplicate whose record is cut", prepare: func(f *fixture) {
			f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1")}, Record: []byte("\x01" + secret), Result: []byte(secret)})
		}},
		way{name: "it is a duplicate that was discarded", prepare: func(f *fixture) {
			f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1")}, Discard: "out of stock"})
		}},
		way{name: "it is too old", handler: inboxmw.Handler{TooOld: inboxmw.TooOldFail, SentAt: sent(48 * time.Hour)}, prepare: func(f *fixture) { f.store.window = time.Hour }},
		way{name: "it produces what is too large", handler: inboxmw.Handler{MaxRecord: 10}, end: secrets},
		way{name: "it may not produce", handler: inboxmw.Handler{Produced: inboxmw.Reject()}, end: secrets},
		way{name: "it produces two of one UUID", end: func(msg *message.Message) ([]*message.Message, error) {
			a, err := secrets(msg)
			b, _ := secrets(msg)
			return append(a, b...), err
		}},
		way{name: "it produces what it consumed", end: func(msg *message.Message) ([]*message.Message, error) {
			return []*message.Message{msg}, nil
		}},
		way{name: "its payload is changed in place", end: func(msg *message.Message) ([]*message.Message, error) {
			msg.Payload[0] = 'X'
			return nil, errHandler
		}},
		way{name: "it is acked early, and fails", end: func(msg *message.Message) ([]*message.Message, error) {
			msg.Ack()
			return nil, errHandler
		}},
		way{name: "it has no id", handler: inboxmw.Handler{Key: inboxmw.Metadata("missing")}},
		way{name: "its metadata make no id", handler: inboxmw.Handler{Key: func(msg *message.Message) (string, error) {
			return strings.Repeat("long", inbox.MaxMessageID), nil
		}}},
	)
	for _, w := range all {
		t.Run("when "+w.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, w.handler)
			if w.prepare != nil {
				w.prepare(f)
			}
			end := w.end
			if end == nil {
				end = secrets
			}
			msg := f.message("o1")
			msg.Payload = []byte(secret)
			msg.Metadata.Set("customer", secret)
			var err error
			undisturbed(func(msg *message.Message) (_ []*message.Message, failed error) {
				defer func() { err = failed }()
				return f.wrap(end)(msg)
			}, msg)
			f.mustKeepSecret(t, err)
		})
	}
}

// secrets is a handler that produces a message with secrets.
func secrets(msg *message.Message) ([]*message.Message, error) {
	out := message.NewMessage("m1", []byte(secret))
	out.Metadata.Set("customer", secret)
	return []*message.Message{out}, inbox.SetResult(msg.Context(), []byte(secret))
}

// mustKeepSecret looks at what is told: logs, events, and the error with all that it
// wraps.
func (f *fixture) mustKeepSecret(t *testing.T, err error) {
	t.Helper()
	told := append([]string{}, f.logs.lines...)
	for _, e := range f.watcher.ends {
		e.Delivery.Fingerprint = nil
		told = append(told, fmt.Sprintf("%+v", e), fmt.Sprintf("%+v %#v", e.Err, e.Err))
	}
	for _, d := range f.watcher.starts {
		told = append(told, fmt.Sprintf("%+v", d))
	}
	told = append(told, chain(err)...)
	for _, text := range told {
		if strings.Contains(text, "DE0212") || strings.Contains(text, "iban") {
			t.Errorf("told: %s", text)
		}
	}
	if len(f.watcher.ends) == 0 {
		t.Error("no delivery was seen")
	}
}

// chain formats err and all that it wraps.
func chain(err error) []string {
	if err == nil {
		return nil
	}
	texts := []string{err.Error(), fmt.Sprintf("%+v", err)}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			texts = append(texts, chain(one)...)
		}
	}
	return append(texts, chain(errors.Unwrap(err))...)
}
