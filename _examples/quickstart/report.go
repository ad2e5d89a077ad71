package main

import (
	"fmt"
	"strings"
)

// tally counts invoices or emails by the order that each belongs to.
type tally struct {
	all     int
	doubled int // beyond the first of an order
	lost    int // orders without any
}

func count(orders []line, byOrder map[string]int) tally {
	var t tally
	for _, n := range byOrder {
		t.all += n
	}
	for _, o := range orders {
		switch n := byOrder[o.ID]; n {
		case 0:
			t.lost++
		default:
			t.doubled += n - 1
		}
	}
	return t
}

func (t tally) harm() int { return t.doubled + t.lost }

// table shows the outcomes side by side.
func table(ways []way, outcomes map[way]outcome) string {
	var out strings.Builder
	row := func(label string, cell func(outcome) int) {
		fmt.Fprintf(&out, "%-18s", label)
		for _, w := range ways {
			fmt.Fprintf(&out, "%18d", cell(outcomes[w]))
		}
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "%-18s", "")
	for _, w := range ways {
		fmt.Fprintf(&out, "%18s", w)
	}
	out.WriteByte('\n')
	row("deliveries", func(o outcome) int { return o.deliveries })
	row("invoices written", func(o outcome) int { return o.invoices.all })
	row("  doubled", func(o outcome) int { return o.invoices.doubled })
	row("  lost", func(o outcome) int { return o.invoices.lost })
	row("emails sent", func(o outcome) int { return o.emails.all })
	row("  doubled", func(o outcome) int { return o.emails.doubled })
	row("  lost", func(o outcome) int { return o.emails.lost })
	return out.String()
}

// verdict is the last line, or the error that says what is not as promised.
func verdict(orders int, unprotected, protected outcome) (string, error) {
	numbers := fmt.Sprintf("%d messages, %d deliveries, %d effects, %d outputs, %d doubled, %d lost",
		orders, protected.deliveries, protected.invoices.all, protected.emails.all,
		protected.invoices.doubled+protected.emails.doubled, protected.invoices.lost+protected.emails.lost)
	switch {
	case protected.invoices != tally{all: orders}, protected.emails != tally{all: orders}:
		return "", fmt.Errorf("with the line: %s", numbers)
	case protected.deliveries <= orders:
		return "", fmt.Errorf("no message came twice, so this shows nothing: %s", numbers)
	case unprotected.invoices.harm()+unprotected.emails.harm() == 0:
		return "", fmt.Errorf("no harm without the line, so this shows nothing: %d deliveries", unprotected.deliveries)
	}
	return "ok: " + numbers, nil
}
