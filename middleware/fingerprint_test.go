package inboxmw_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	payload := message.Payload(`{"total":100}`)
	sum := sha256.Sum256(payload)
	first := func(t *testing.T, h inboxmw.Handler) *fixture {
		t.Helper()
		f := setup(t, h)
		msg := f.message("o1")
		msg.Payload = bytes.Clone(payload)
		mustHandle(t, f.wrap(produces("m1")), msg)
		return f
	}
	again := func(f *fixture, content string) ([]*message.Message, error) {
		msg := f.message("o1")
		msg.Payload = message.Payload(content)
		return f.wrap(produces("other"))(msg)
	}
	const other = `{"total":999}`

	t.Run("none is kept by default, and content is not compared", func(t *testing.T) {
		t.Parallel()
		f := first(t, inboxmw.Handler{})
		if d := f.store.asked()[0]; d.Fingerprint != nil {
			t.Errorf("got %x", d.Fingerprint)
		}
		if _, err := again(f, other); err != nil {
			t.Error(err)
		}
		if e := f.watcher.last(t); e.Mismatch || e.Outcome != inbox.Duplicate {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("it is the SHA-256 of the payload as it was delivered", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{Fingerprint: inboxmw.FingerprintWarn})
		msg := f.message("o1")
		msg.Payload = bytes.Clone(payload)
		mustHandle(t, f.wrap(func(m *message.Message) ([]*message.Message, error) {
			m.Payload = message.Payload(other)
			return nil, nil
		}), msg)
		if d := f.store.asked()[0]; !bytes.Equal(d.Fingerprint, sum[:]) {
			t.Errorf("got %x", d.Fingerprint)
		}
	})
	t.Run("the same content is a plain duplicate", func(t *testing.T) {
		t.Parallel()
		for _, policy := range []inboxmw.Fingerprint{inboxmw.FingerprintWarn, inboxmw.FingerprintFail} {
			f := first(t, inboxmw.Handler{Fingerprint: policy})
			if out, err := again(f, string(payload)); err != nil || len(out) != 1 {
				t.Errorf("got %v, %v", uuids(out), err)
			}
			f.logs.wantLines(t, 0, "error")
		}
	})
	t.Run("warn logs other content, counts it, and answers as for a duplicate", func(t *testing.T) {
		t.Parallel()
		f := first(t, inboxmw.Handler{Fingerprint: inboxmw.FingerprintWarn})
		out, err := again(f, other)
		if err != nil || len(out) != 1 || out[0].UUID != "m1" {
			t.Errorf("got %v, %v", uuids(out), err)
		}
		if e := f.watcher.last(t); !e.Mismatch || e.Outcome != inbox.Duplicate {
			t.Errorf("got %+v", e)
		}
		f.logs.wantLines(t, 1, "error", "other content")
	})
	t.Run("fail refuses other content for ever, replays nothing, and lets it into a poison queue", func(t *testing.T) {
		t.Parallel()
		f := first(t, inboxmw.Handler{Fingerprint: inboxmw.FingerprintFail})
		out, err := again(f, other)
		if out != nil || !errors.Is(err, inbox.ErrMismatch) || !inbox.Permanent(err) || !inboxmw.ToPoison(err) {
			t.Errorf("got %v, %v", uuids(out), err)
		}
		wantText(t, err, "o1", "key")
		if e := f.watcher.last(t); !e.Mismatch || e.Outcome != inbox.Failed {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a key from before fingerprints were kept is a plain duplicate", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{Fingerprint: inboxmw.FingerprintFail})
		f.store.put(inbox.Entry{Delivery: inbox.Delivery{Key: key("o1")}})
		if _, err := again(f, other); err != nil {
			t.Error(err)
		}
	})
	t.Run("a handler can switch it off, and a wrong value is refused at start", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{})
		in := inboxmw.MustNew(f.store, &inboxmw.Config{
			Handler:  inboxmw.Handler{Fingerprint: inboxmw.FingerprintFail},
			Handlers: map[string]inboxmw.Handler{handlerName: {Fingerprint: inboxmw.FingerprintOff}},
		})
		mustHandle(t, in.Middleware(produces()), f.message("o1"))
		if d := f.store.asked()[0]; d.Fingerprint != nil {
			t.Errorf("got %x", d.Fingerprint)
		}
		_, err := inboxmw.New(f.store, &inboxmw.Config{Handler: inboxmw.Handler{Fingerprint: "maybe"}})
		wantText(t, err, "Config.Handler.Fingerprint", "maybe")
	})
}

func ExampleFingerprint() {
	in := inboxmw.MustNew(newMemory(), &inboxmw.Config{Handler: inboxmw.Handler{
		Fingerprint: inboxmw.FingerprintFail,
	}})
	handler := in.With(inboxmw.Handler{Consumer: "invoices"})(func(*message.Message) ([]*message.Message, error) {
		fmt.Println("invoice written")
		return nil, nil
	})
	for _, total := range []string{"100", "100", "999"} {
		_, err := handler(message.NewMessage("order-17", message.Payload(total)))
		fmt.Println(err)
	}
	// Output:
	// invoice written
	// <nil>
	// <nil>
	// inbox: a duplicate has other content than the first delivery of its key: invoices/order-17; was an id used twice, or does the key lack a part?
}
