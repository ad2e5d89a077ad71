package integration_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for databases, not for processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, s := range []*server{postgresServer, mysqlServer} {
		if err := s.missing(); err != nil {
			fmt.Printf("NOT COVERED: %s (%s): %v\n", s.name, s.env, err)
		}
	}
	os.Exit(code)
}
