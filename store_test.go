package inbox_test

import (
	"testing"

	"github.com/watermill-inbox/inbox"
)

func TestFindingString(t *testing.T) {
	t.Parallel()
	f := inbox.Finding{Fatal: true, Problem: "the server is read-only", Remedy: "connect to the primary"}
	if got, want := f.String(), "the server is read-only; connect to the primary"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
