package inboxmw_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// sent has all messages sent so long ago.
func sent(ago time.Duration) func(*message.Message) time.Time {
	return func(*message.Message) time.Time { return time.Now().Add(-ago) }
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	const before = inbox.DefaultWindow + time.Second

	t.Run("such a message is processed by default, and the event says so", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{SentAt: sent(before)})
		mustHandle(t, f.wrap(produces("m1")), f.message("o1"))
		if e := f.watcher.last(t); e.Outcome != inbox.Processed || !e.TooOld || time.Since(e.Delivery.SentAt) < before {
			t.Errorf("got %+v", e)
		}
		f.logs.wantLines(t, 1, "info", "older than the window", "o1")
	})
	t.Run("it can fail, for good", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{SentAt: sent(before), TooOld: inboxmw.TooOldFail})
		_, err := f.wrap(neverRuns(t))(f.message("o1"))
		if !errors.Is(err, inbox.ErrTooOld) || !inboxmw.ToPoison(err) {
			t.Errorf("got %v", err)
		}
		mustSay(t, err, "invoices/o1", "168h0m1s", "168h0m0s")
		if e := f.watcher.last(t); e.Outcome != inbox.Failed || !e.TooOld {
			t.Errorf("got %+v", e)
		}
		if _, kept := f.store.entry(key("o1")); kept {
			t.Error("a message that failed has a key")
		}
	})
	t.Run("it can be discarded, with the reason", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{SentAt: sent(before), TooOld: inboxmw.TooOldDiscard})
		mustHandle(t, f.wrap(neverRuns(t)), f.message("o1"))
		if e := f.watcher.last(t); e.Outcome != inbox.Discarded || !e.TooOld {
			t.Errorf("got %+v", e)
		}
		if e, _ := f.store.entry(key("o1")); !strings.Contains(e.Discard, inbox.ErrTooOld.Error()) {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a duplicate is one however old it is, and gives its messages again", func(t *testing.T) {
		t.Parallel()
		for _, policy := range []inboxmw.TooOld{inboxmw.TooOldProcess, inboxmw.TooOldFail, inboxmw.TooOldDiscard} {
			ago := time.Duration(0)
			f := setup(t, inboxmw.Handler{TooOld: policy, SentAt: func(*message.Message) time.Time { return time.Now().Add(-ago) }})
			mustHandle(t, f.wrap(produces("m1")), f.message("o1"))
			ago = before
			if out := mustHandle(t, f.wrap(neverRuns(t)), f.message("o1")); len(out) != 1 || out[0].UUID != "m1" {
				t.Errorf("%s: got %v", policy, out)
			}
			if e := f.watcher.last(t); e.Outcome != inbox.Duplicate || e.TooOld {
				t.Errorf("%s: got %+v", policy, e)
			}
		}
	})

	young := map[string]func(*message.Message) time.Time{
		"a message within the window":               sent(inbox.DefaultWindow - time.Minute),
		"a message from the future":                 sent(-before),
		"a message of which no one knows":           func(*message.Message) time.Time { return time.Time{} },
		"an id without a time, if nothing is asked": nil,
	}
	for name, sentAt := range young {
		t.Run(name+" is not too old", func(t *testing.T) {
			t.Parallel()
			f := setup(t, inboxmw.Handler{SentAt: sentAt, TooOld: inboxmw.TooOldFail})
			mustHandle(t, f.wrap(produces("m1")), f.message("o1"))
			if e := f.watcher.last(t); e.Outcome != inbox.Processed || e.TooOld {
				t.Errorf("got %+v", e)
			}
		})
	}
	t.Run("the id is asked by default", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{TooOld: inboxmw.TooOldFail})
		if _, err := f.wrap(neverRuns(t))(f.message("01ARZ3NDEKTSV4RRFFQ69G5FAV")); !errors.Is(err, inbox.ErrTooOld) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing is too old for keys that stay for ever", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{SentAt: sent(1000 * before), TooOld: inboxmw.TooOldFail})
		f.store.window = 0
		mustHandle(t, f.wrap(produces("m1")), f.message("o1"))
	})
	t.Run("it is judged again when it comes again", func(t *testing.T) {
		t.Parallel()
		f := setup(t, inboxmw.Handler{SentAt: sent(before), TooOld: inboxmw.TooOldFail})
		for range 2 {
			if _, err := f.wrap(neverRuns(t))(f.message("o1")); !errors.Is(err, inbox.ErrTooOld) {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("settings that cannot be are refused", func(t *testing.T) {
		t.Parallel()
		_, err := inboxmw.New(newMemory(), &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"invoices": {TooOld: "drop"}}})
		mustSay(t, err, `Config.Handlers["invoices"].TooOld is "drop"`, "TooOldDiscard")
		for _, cfg := range []inboxmw.Config{
			{Handler: inboxmw.Handler{TooOld: inboxmw.TooOldFail}},
			{Handlers: map[string]inboxmw.Handler{"invoices": {TooOld: inboxmw.TooOldDiscard}}},
		} {
			_, err = inboxmw.New(struct{ inbox.Store }{newMemory()}, &cfg)
			mustSay(t, err, "Config.Handler", "TooOld", "inbox.Windowed")
		}
		if _, err = inboxmw.New(struct{ inbox.Store }{newMemory()}, nil); err != nil {
			t.Errorf("a store without a window: %v", err)
		}
	})
}

// neverRuns is a handler that fails the test.
func neverRuns(t *testing.T) message.HandlerFunc {
	t.Helper()
	return func(*message.Message) ([]*message.Message, error) {
		t.Error("the handler ran")
		return nil, nil
	}
}

func mustSay(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q, want it to say %q", err, text)
		}
	}
}
