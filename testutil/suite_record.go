package testutil

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/watermill-inbox/inbox"
)

func recordCases() []testCase {
	return []testCase{
		{name: "rule 14: a result is kept with the key, any bytes", run: recordResult},
		{name: "rule 14: the result of a run that was rolled back is not kept", run: recordRolledBack},
		{name: "rule 18: a record is kept with the key, any bytes", run: recordRecord},
		{name: "rule 18: neither result nor record is kept if there is none", run: recordNone},
	}
}

func blobs() map[string][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return map[string][]byte{
		"a NUL":       {0},
		"all bytes":   all,
		"text":        []byte(`{"name":"Łukasz '\" \\x00"}`),
		"backslashes": []byte(`\\x41\101`),
		"large":       bytes.Repeat(all, 2048),
	}
}

func recordResult(t *testing.T, h Harness) {
	keepsBytes(t, h, func(b []byte) inbox.Effect { return inbox.Effect{Result: b} })
}

func recordRecord(t *testing.T, h Harness) {
	keepsBytes(t, h, func(b []byte) inbox.Effect { return inbox.Effect{Record: b} })
	keepsBytes(t, h, func(b []byte) inbox.Effect { return inbox.Effect{Record: b, Result: b[:1]} })
}

func keepsBytes(t *testing.T, h Harness, effectOf func([]byte) inbox.Effect) {
	t.Helper()
	in := h.open(t, Options{})
	for name, b := range blobs() {
		effect := effectOf(b)
		deliver(t.Context(), in.Store, keyOf(name), func(ctx context.Context) (inbox.Effect, error) {
			return effect, in.Write(ctx, name)
		}).mustProcess(t)
		a := deliver(t.Context(), in.Store, keyOf(name), in.writes(name))
		a.mustDuplicate(t)
		mustEqual(t, name, a.entry, inbox.Delivery{Key: keyOf(name)}, effect)
		in.mustHave(t, 1, name)
	}
}

func recordRolledBack(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	for i, own := range []error{errHandler, nil} {
		deliverOnce := deliver(t.Context(), in.Store, keyOf("1"), func(ctx context.Context) (inbox.Effect, error) {
			result := fmt.Appendf(nil, "run %d", i)
			return inbox.Effect{Record: result, Result: result}, own
		})
		if deliverOnce.err != own { //nolint:errorlint // it must be that error and no other
			t.Fatalf("got %s, want %v", deliverOnce, own)
		}
	}
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	a.mustDuplicate(t)
	run := []byte("run 1")
	mustEqual(t, "the duplicate", a.entry, inbox.Delivery{Key: keyOf("1")}, inbox.Effect{Record: run, Result: run})
}

func recordNone(t *testing.T, h Harness) {
	in := h.open(t, Options{})
	deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect")).mustProcess(t)
	a := deliver(t.Context(), in.Store, keyOf("1"), in.writes("effect"))
	a.mustDuplicate(t)
	if a.entry.Record != nil || a.entry.Result != nil || a.entry.Fingerprint != nil || a.entry.Discard != "" || a.entry.EventType != "" {
		t.Errorf("got %+v, want nothing but the key and its times", a.entry)
	}
}
