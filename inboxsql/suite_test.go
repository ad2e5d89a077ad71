package inboxsql_test

import (
	"testing"

	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	"github.com/watermill-inbox/inbox/testutil"
)

func TestStoreOnSQLite(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, sqlitetest.File("").Harness())
}
