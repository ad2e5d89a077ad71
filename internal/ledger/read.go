package ledger

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Read reads a book from three texts: sent and effects have an id in each line,
// outputs have the id of the message that it was produced for, a tab, and the UUID.
func Read(sent, effects, outputs io.Reader, each int) (Book, error) {
	b := Book{Each: each}
	if err := lines(sent, "sent", func(line string) error { b.Sent = append(b.Sent, line); return nil }); err != nil {
		return Book{}, err
	}
	if err := lines(effects, "effects", func(line string) error { b.Effects = append(b.Effects, line); return nil }); err != nil {
		return Book{}, err
	}
	err := lines(outputs, "outputs", func(line string) error {
		of, id, found := strings.Cut(line, "\t")
		if !found || of == "" || id == "" {
			return fmt.Errorf("%q is not an id, a tab and a UUID", line)
		}
		b.Outputs = append(b.Outputs, Output{ID: id, Of: of})
		return nil
	})
	if err != nil {
		return Book{}, err
	}
	return b, nil
}

// lines calls take for each line that is not empty.
func lines(r io.Reader, name string, take func(line string) error) error {
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		if scanner.Text() == "" {
			continue
		}
		if err := take(scanner.Text()); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
