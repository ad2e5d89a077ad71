package components_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuide keeps docs/middleware.md from naming what is not tested, and from
// leaving out what is.
func TestGuide(t *testing.T) {
	t.Parallel()
	guide := read(t, filepath.Join("..", "..", "..", "docs", "middleware.md"))
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		tests.WriteString(read(t, file))
	}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(guide, -1) {
		if !strings.Contains(tests.String(), "func "+name[1]+"(t *testing.T)") {
			t.Errorf("the guide names %s, which is not here", name[1])
		}
	}
	for name := range rows() {
		if !strings.Contains(guide, "\n| "+name+" |") {
			t.Errorf("the guide has no row %q", name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file) //nolint:gosec // a file of this repository
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
