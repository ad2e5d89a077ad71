package outbox_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuide keeps docs/outbox.md to what is tested here.
func TestGuide(t *testing.T) {
	t.Parallel()
	guide := read(t, filepath.Join("..", "..", "..", "docs", "outbox.md"))
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range tests {
		all.WriteString(read(t, name))
	}
	t.Run("its code stands in open_test.go word for word", func(t *testing.T) {
		t.Parallel()
		source := read(t, "open_test.go")
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(guide, -1)
		if len(blocks) == 0 {
			t.Error("there is none")
		}
		for _, b := range blocks {
			for part := range strings.SplitSeq(b[1], "\n\n") {
				if !strings.Contains(source, strings.Trim(part, "\n")) {
					t.Errorf("this does not:\n%s", part)
				}
			}
		}
	})
	t.Run("the tests that it names exist", func(t *testing.T) {
		t.Parallel()
		names := regexp.MustCompile(`\bTest\w+`).FindAllString(guide, -1)
		if len(names) == 0 {
			t.Error("it names none")
		}
		for _, name := range names {
			if !strings.Contains(all.String(), "func "+name+"(t *testing.T)") {
				t.Errorf("%s does not", name)
			}
		}
	})
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path) //nolint:gosec // of this repository
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
