package integration_test

import (
	"flag"
	"os"
	"testing"

	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for databases, not for processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	servers.Report(os.Stdout, servers.Postgres, servers.MariaDB)
	os.Exit(code)
}
