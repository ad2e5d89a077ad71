// Package ledger compares what was sent with what became of it, as seen from
// outside: in the database and at the topic of the outputs.
package ledger

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Book is what was seen.
type Book struct {
	// Sent are the ids of the messages that were sent, each once, however often
	// they were delivered.
	Sent []string

	// Effects are the rows that handlers left, each with the id of its message.
	Effects []string

	// Outputs are the messages at the topic of the outputs, as often as they came.
	Outputs []Output

	// Each is how many outputs each message has.
	Each int
}

// Output is a message that a handler produced.
type Output struct {
	ID string // its UUID
	Of string // the id of the message that it was produced for
}

// Verdict is what is wrong, by the ids of the messages that were sent. Only Repeated is
// no fault: outputs come at least once.
type Verdict struct {
	Lost        []string // without an effect
	Doubled     []string // with several effects, or more outputs than it has
	OutputsLost []string // with fewer outputs than it has
	Unsent      []string // with an effect or an output, though no one sent it
	Repeated    int      // outputs that came again under the same UUID
}

// Check compares.
func Check(b Book) Verdict {
	sent := count(b.Sent)
	effects := count(b.Effects)
	outputs := map[string]map[string]int{}
	for _, o := range b.Outputs {
		if outputs[o.Of] == nil {
			outputs[o.Of] = map[string]int{}
		}
		outputs[o.Of][o.ID]++
	}
	var v Verdict
	for _, id := range slices.Sorted(maps.Keys(sent)) {
		if effects[id] == 0 {
			v.Lost = append(v.Lost, id)
		}
		if effects[id] > 1 || len(outputs[id]) > b.Each {
			v.Doubled = append(v.Doubled, id)
		}
		if len(outputs[id]) < b.Each {
			v.OutputsLost = append(v.OutputsLost, id)
		}
		for _, times := range outputs[id] {
			v.Repeated += times - 1
		}
	}
	unsent := map[string]bool{}
	for id := range effects {
		unsent[id] = sent[id] == 0
	}
	for id := range outputs {
		unsent[id] = sent[id] == 0
	}
	for _, id := range slices.Sorted(maps.Keys(unsent)) {
		if unsent[id] {
			v.Unsent = append(v.Unsent, id)
		}
	}
	return v
}

// OK reports whether nothing is wrong.
func (v Verdict) OK() bool {
	return len(v.Lost)+len(v.Doubled)+len(v.OutputsLost)+len(v.Unsent) == 0
}

// String is the verdict in one line, without ids.
func (v Verdict) String() string {
	return fmt.Sprintf("%d lost, %d doubled, %d outputs lost, %d unsent; %d outputs repeated",
		len(v.Lost), len(v.Doubled), len(v.OutputsLost), len(v.Unsent), v.Repeated)
}

// Print writes the verdict, and the first ids of each kind.
func (v Verdict) Print(w io.Writer) error {
	if _, err := fmt.Fprintln(w, v); err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		ids  []string
	}{{"lost", v.Lost}, {"doubled", v.Doubled}, {"outputs lost", v.OutputsLost}, {"unsent", v.Unsent}} {
		if len(kind.ids) == 0 {
			continue
		}
		shown, more := kind.ids, ""
		if len(shown) > most {
			shown, more = shown[:most], " …"
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s\n", kind.name, strings.Join(shown, " "), more); err != nil {
			return err
		}
	}
	return nil
}

// most is how many ids of a kind are shown.
const most = 10

func count(ids []string) map[string]int {
	times := make(map[string]int, len(ids))
	for _, id := range ids {
		times[id]++
	}
	return times
}
