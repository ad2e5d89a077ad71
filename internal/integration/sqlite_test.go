package integration_test

import (
	"testing"

	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	"github.com/watermill-inbox/inbox/testutil"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{
		"WAL":           sqlitetest.WAL,
		"WAL, deferred": "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout(100)",
		// Here readers hold up a COMMIT, which only the driver waits for.
		"rollback journal": "?_pragma=journal_mode(DELETE)&_pragma=synchronous(OFF)&_pragma=busy_timeout(2000)&_txlock=immediate",
		"no busy timeout":  "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout(0)&_txlock=immediate",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testutil.RunStoreTests(t, sqlitetest.File(query).Harness())
		})
	}
}

func TestSQLiteInMemory(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, sqlitetest.Memory().Harness())
}
