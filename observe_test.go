package inbox_test

import (
	"testing"

	"github.com/watermill-inbox/inbox"
)

// Dashboards and alerts hold these names.
func TestNamesInMetricsAndLogsAreFrozen(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[inbox.Outcome]string{
		inbox.Processed:   "processed",
		inbox.Duplicate:   "duplicate",
		inbox.Discarded:   "discarded",
		inbox.Failed:      "failed",
		inbox.InFlight:    "in_flight",
		inbox.Unprotected: "unprotected",
		inbox.Skipped:     "skipped",
	} {
		if string(outcome) != want {
			t.Errorf("outcome %q was named %q", outcome, want)
		}
	}
	for op, want := range map[inbox.Op]string{
		inbox.OpConnect: "connect",
		inbox.OpBegin:   "begin",
		inbox.OpClaim:   "claim",
		inbox.OpRecord:  "record",
		inbox.OpCommit:  "commit",
		inbox.OpDiscard: "discard",
	} {
		if string(op) != want {
			t.Errorf("step %q was named %q", op, want)
		}
	}
}
