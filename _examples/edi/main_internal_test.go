package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestRunEndsWithOneTransitionPerDocumentInAnyOrder(t *testing.T) {
	t.Parallel()

	ok := regexp.MustCompile(`\nok: 18 documents, 36 deliveries, 18 transitions, one transition per document, 0 doubled, 0 lost\n$`)
	var first string
	for seed := range uint64(5) {
		report, err := run(t.Context(), seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, history, _ := strings.Cut(report, "\n")
		if !ok.MatchString(history) {
			t.Fatalf("seed %d: no ok line in\n%s", seed, history)
		}
		if first == "" {
			first = history
		}
		if history != first {
			t.Errorf("seed %d: another order of arrival made another history:\n%s\nnot\n%s", seed, history, first)
		}
	}
}

// A document that is cut anywhere must not be taken for another one.
func TestCutDocumentsAreRefused(t *testing.T) {
	t.Parallel()

	all, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		whole, err := readAcknowledgement(d.content)
		if err != nil {
			t.Errorf("%s/%s: %v", d.partner, d.file, err)
		}
		for n := range d.content {
			if cut, err := readAcknowledgement(d.content[:n]); err == nil && cut != whole {
				t.Errorf("%s/%s cut after %d bytes was read as %+v", d.partner, d.file, n, cut)
			}
		}
	}
}

func FuzzReadAcknowledgement(f *testing.F) {
	all, err := documents()
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range all {
		f.Add(d.content)
	}
	f.Add([]byte("UNA:+.? '"))
	f.Add([]byte("ISA*00*"))
	f.Fuzz(func(t *testing.T, document []byte) {
		ack, err := readAcknowledgement(document)
		switch {
		case err != nil && ack != acknowledgement{}:
			t.Errorf("an acknowledgement %+v beside the error %v", ack, err)
		case err == nil && (ack.reference == "" || ack.disposition == "" || ack.transition == "" || ack.issued.IsZero()):
			t.Errorf("%+v is not complete", ack)
		case errors.Is(err, errTruncated) && len(document) == 0:
			t.Error("nothing is no document that was cut")
		}
	})
}
