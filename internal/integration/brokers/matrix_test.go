package brokers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// matrix is what came of each case on each broker.
type matrix struct {
	mu      sync.Mutex
	brokers []string
	cells   map[[2]string]string // by broker and case
	reasons map[string][]string  // of cases that a broker lacks: brokers by case and reason
}

//nolint:gochecknoglobals // printed when all tests are over
var results = matrix{cells: map[[2]string]string{}, reasons: map[string][]string{}}

// enter enters a case that is over. A lack is why the broker cannot have it.
func (m *matrix) enter(t *testing.T, broker, name, lack string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.brokers, broker) {
		m.brokers = append(m.brokers, broker)
	}
	cell := "ok"
	switch {
	case t.Failed():
		cell = "FAILED"
	case lack != "":
		cell = "-"
		reason := name + ": " + lack
		if !slices.Contains(m.reasons[reason], broker) {
			m.reasons[reason] = append(m.reasons[reason], broker)
		}
	case t.Skipped():
		cell = "not run"
	}
	if was := m.cells[[2]string{broker, name}]; was != "FAILED" { // with -count a case runs several times
		m.cells[[2]string{broker, name}] = cell
	}
}

// String is a table of cases and brokers, with the reasons for what is lacking.
func (m *matrix) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.brokers) == 0 {
		return ""
	}
	slices.Sort(m.brokers)
	names := make([]string, 0, len(cases()))
	width := 0
	for _, c := range cases() {
		names = append(names, c.name)
		width = max(width, len(c.name))
	}
	var b strings.Builder
	row := func(first string, cells ...string) {
		columns := make([]string, 1, 1+len(cells))
		columns[0] = fmt.Sprintf("%-*s", width, first)
		for i, cell := range cells {
			columns = append(columns, fmt.Sprintf("%-*s", max(len(m.brokers[i]), len("not run")), cell))
		}
		b.WriteString(strings.TrimRight(strings.Join(columns, "  "), " ") + "\n")
	}
	row("", m.brokers...)
	for _, name := range names {
		cells := make([]string, 0, len(m.brokers))
		for _, broker := range m.brokers {
			cells = append(cells, m.cells[[2]string{broker, name}])
		}
		row(name, cells...)
	}
	for _, reason := range slices.Sorted(maps.Keys(m.reasons)) {
		slices.Sort(m.reasons[reason])
		fmt.Fprintf(&b, "- %s (%s)\n", reason, strings.Join(m.reasons[reason], ", "))
	}
	return b.String()
}
