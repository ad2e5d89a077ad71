package testutil

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// snapshot is what the tables of a database have at one moment.
type snapshot struct {
	tables map[string]*rows
}

// rows are those of a table, whatever its key is: equal ones are counted.
type rows struct {
	count   int // as far as it was read
	times   map[[sha256.Size]byte]int
	display map[[sha256.Size]byte]string
}

// takeSnapshot reads all tables in one transaction, of each at most one row more than
// may be.
func takeSnapshot(ctx context.Context, db *sql.DB, most int, ignore []string) (*snapshot, error) {
	catalog, err := catalogOf(ctx, db)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, catalog.options)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	tables, err := catalog.list(ctx, tx)
	if err != nil {
		return nil, err
	}
	s := &snapshot{tables: map[string]*rows{}}
	for _, t := range tables {
		if slices.Contains(ignore, t.name) || slices.Contains(ignore, t.schema+"."+t.name) {
			continue
		}
		r, err := readRows(ctx, tx, fmt.Sprintf(catalog.read, catalog.quote(t.schema), catalog.quote(t.name), most+1))
		if err != nil {
			return nil, fmt.Errorf("table %s.%s: %w", t.schema, t.name, err)
		}
		s.tables[t.schema+"."+t.name] = r
	}
	return s, nil
}

func readRows(ctx context.Context, tx *sql.Tx, query string) (*rows, error) {
	found, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // reported by Err
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	r := &rows{times: map[[sha256.Size]byte]int{}, display: map[[sha256.Size]byte]string{}}
	values := make([]any, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for found.Next() {
		if err := found.Scan(targets...); err != nil {
			return nil, err
		}
		hash := sha256.New()
		shown := make([]string, len(columns))
		for i, v := range values {
			text := format(v)
			_, _ = fmt.Fprintf(hash, "%d:%s", len(text), text)
			shown[i] = columns[i] + "=" + short(text)
		}
		sum := [sha256.Size]byte(hash.Sum(nil))
		r.count++
		r.times[sum]++
		r.display[sum] = strings.Join(shown, ", ")
	}
	return r, found.Err()
}

// format makes a text of a value such that different values have different ones.
func format(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		if utf8.Valid(v) {
			return fmt.Sprintf("%q", v)
		}
		return fmt.Sprintf("0x%x", v)
	case string:
		return fmt.Sprintf("%q", v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v)
	}
}

// short cuts what is too long to read.
func short(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes)", len(text))
}

// names are those of all tables of both.
func (s *snapshot) names(other *snapshot) []string {
	all := maps.Clone(s.tables)
	maps.Copy(all, other.tables)
	return slices.Sorted(maps.Keys(all))
}

// changed says in what the table of that name differs in after. Empty: in nothing.
func (s *snapshot) changed(after *snapshot, name string, most int) string {
	was, is := s.tables[name], after.tables[name]
	switch {
	case was == nil:
		return fmt.Sprintf("table %s was created", name)
	case is == nil:
		return fmt.Sprintf("table %s was dropped", name)
	case was.count > most || is.count > most:
		return fmt.Sprintf("table %s has more than %d rows and was not compared: check on a database with less in it, raise Check.MaxRows, or name the table in Check.Ignore", name, most)
	}
	lines := slices.Concat(was.without(is, "- "), is.without(was, "+ "))
	if len(lines) == 0 {
		return ""
	}
	const shown = 10
	if len(lines) > shown {
		lines = append(lines[:shown], fmt.Sprintf("… and %d more", len(lines)-shown))
	}
	return fmt.Sprintf("table %s has changed:\n  %s", name, strings.Join(lines, "\n  "))
}

// without are the rows that other has not, or not as often.
func (r *rows) without(other *rows, prefix string) []string {
	var lines []string
	for sum, times := range r.times {
		for range times - other.times[sum] {
			lines = append(lines, prefix+r.display[sum])
		}
	}
	slices.Sort(lines)
	return lines
}
