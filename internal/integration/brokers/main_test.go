package brokers_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for brokers, not for processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	fmt.Print(&results)
	servers.Report(os.Stdout, servers.Postgres, servers.MariaDB, servers.RabbitMQ, servers.Redis)
	os.Exit(code)
}
