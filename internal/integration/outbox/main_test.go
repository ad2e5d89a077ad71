package outbox_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for databases, not for processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, s := range []*server{postgresServer, mariadbServer} {
		if err := s.missing(); err != nil {
			fmt.Printf("NOT COVERED: outbox on %s (%s): %v\n", s.name, s.env, err)
		}
	}
	os.Exit(code)
}
