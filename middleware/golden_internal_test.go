package inboxmw

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// ReadGolden returns the lines "name value" of a file in testdata, by name.
func ReadGolden(tb testing.TB, file string) map[string]string {
	tb.Helper()
	b, err := fs.ReadFile(os.DirFS("testdata"), file)
	if err != nil {
		tb.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, " ")
		if _, twice := values[name]; !ok || twice {
			tb.Fatalf("%s: line %q is not a name of its own and a value", file, name)
		}
		values[name] = value
	}
	return values
}
