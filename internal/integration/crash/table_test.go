package crash_test

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// matrix is what came of each cell.
type matrix struct {
	mu    sync.Mutex
	cells map[cell]outcome
}

//nolint:gochecknoglobals // printed when all tests are over
var results = matrix{cells: map[cell]outcome{}}

func (m *matrix) enter(c cell, o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells[c] = o
}

// table has a row for each step and database, and a column for each broker: lost,
// doubled and outputs lost, and how many workers were killed.
func (m *matrix) table(took time.Duration) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cells) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %-33s %-10s", "", "killed", "")
	for _, broker := range brokers() {
		fmt.Fprintf(&b, "  %-10s", broker)
	}
	b.WriteString("\n")
	var sent, died, delivered, repeated, cells int
	for _, way := range []string{withInbox, withOutbox, naive, without} {
		for _, at := range steps() {
			for _, database := range databases() {
				var row strings.Builder
				ran := false
				for _, broker := range brokers() {
					text := "-"
					if o, there := m.cells[cell{database, broker, way, at}]; there {
						v := o.verdict
						text = fmt.Sprintf("%d %d %d (%d)", len(v.Lost), len(v.Doubled), len(v.OutputsLost), o.died)
						ran = true
						if way == withInbox || way == withOutbox {
							cells, sent, died, delivered, repeated = cells+1, sent+o.sent, died+o.died, delivered+o.deliver, repeated+v.Repeated
						}
					}
					fmt.Fprintf(&row, "  %-10s", text)
				}
				if ran {
					fmt.Fprintf(&b, "%-12s %-33s %-10s%s\n", way, at, database, strings.TrimRight(row.String(), " "))
				}
			}
		}
	}
	b.WriteString("each cell: lost, doubled, outputs lost (deaths)\n")
	fmt.Fprintf(&b, "with the inbox: %d cells, %d messages, %d deaths, %d deliveries, %d outputs repeated; all took %s\n",
		cells, sent, died, delivered, repeated, took.Round(time.Second))
	return b.String()
}
