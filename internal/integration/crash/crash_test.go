package crash_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

func TestMain(m *testing.M) {
	if definition := os.Getenv(workerEnv); definition != "" {
		fmt.Fprintln(os.Stderr, "worker:", work(definition))
		os.Exit(5)
	}
	flag.Parse()
	// The tests wait for brokers, not for processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	began := time.Now()
	code := m.Run()
	fmt.Print(results.table(time.Since(began)))
	servers.Report(os.Stdout, servers.Postgres, servers.MariaDB, servers.RabbitMQ, servers.Redis)
	os.Exit(code)
}

func databases() []string { return []string{"PostgreSQL", "MariaDB", "SQLite"} }

func brokers() []string { return []string{"Kafka", "RabbitMQ", "NATS", "Redis", "SQL"} }

// TestCrash is the whole matrix with INBOX_TEST_LONG, and else each step once, on
// one database and broker after the other.
func TestCrash(t *testing.T) {
	t.Parallel()
	for i, at := range steps() {
		for w, way := range []string{withInbox, withOutbox} {
			for j, database := range databases() {
				for k, broker := range brokers() {
					if at == commitSent && database == "SQLite" {
						continue // nothing is sent
					}
					if os.Getenv("INBOX_TEST_LONG") == "" && (j != (i+w)%2 || k != (2*i+w)%len(brokers())) && (at != midPublish || j != 2 || k != 2) {
						continue
					}
					c := cell{database, broker, way, at}
					t.Run(c.String(), func(t *testing.T) {
						t.Parallel()
						o := c.run(t)
						results.enter(c, o)
						if !o.verdict.OK() {
							var said strings.Builder
							if err := o.verdict.Print(&said); err != nil {
								t.Error(err)
							}
							t.Error(said.String())
						}
					})
				}
			}
		}
	}
}

// TestControl shows that the harness sees what is lost and doubled.
func TestControl(t *testing.T) {
	t.Parallel()
	for _, database := range databases() {
		t.Run("a naive inbox loses outputs: "+database, func(t *testing.T) {
			t.Parallel()
			c := cell{database, "NATS", naive, afterCommit}
			o := c.run(t)
			results.enter(c, o)
			if len(o.verdict.OutputsLost) != deaths || len(o.verdict.Lost)+len(o.verdict.Doubled) != 0 {
				t.Errorf("the harness is broken: %s", o.verdict)
			}
		})
		t.Run("without an inbox effects are doubled: "+database, func(t *testing.T) {
			t.Parallel()
			c := cell{database, "RabbitMQ", without, beforeAck}
			o := c.run(t)
			results.enter(c, o)
			if len(o.verdict.Doubled) < deaths || len(o.verdict.Lost) != 0 {
				t.Errorf("the harness is broken: %s", o.verdict)
			}
		})
	}
}
