package brokers_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for brokers, not for processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	fmt.Print(&results)
	for _, s := range servers() {
		if err := s.missing(); err != nil {
			fmt.Printf("NOT COVERED: %s (%s): %v\n", s.name, s.env, err)
		}
	}
	os.Exit(code)
}
