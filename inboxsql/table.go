package inboxsql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/watermill-inbox/inbox"
)

// table is what the database says of the inbox table.
type table struct {
	server string         // its version, as far as a dialect asks
	limits map[string]int // bytes that the key columns hold; 0: as many as a key may have
}

var columns = [...]string{ //nolint:gochecknoglobals // constant
	"consumer", "source", "message_id", "event_type", "received_at", "processed_at", "outcome", "result", "produced", "fingerprint",
}

// describe reads the table's definition, once per store unless it fails. A table
// that would merge ids, keep a claim through a rollback, or lack a column is
// [inbox.ErrNoTable]: it would lose messages, so nothing is processed with it.
func (s *Store) describe(ctx context.Context, conn queryer) (*table, error) {
	if t := s.table.Load(); t != nil {
		return t, nil
	}
	t := &table{limits: map[string]int{}}
	var flaws []error
	var missing []string
	definitions := [...]string{s.dialect.describe, s.dialect.describePrevious}
	for i, name := range s.tables() {
		exists, flawed, err := t.read(ctx, conn, definitions[i])
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the definition of table %s: %w", name, err)
		case !exists:
			missing = append(missing, name)
		case flawed != nil:
			flaws = append(flaws, fmt.Errorf("table %s: %w", name, flawed))
		}
	}
	if len(missing) > 0 {
		return nil, s.noTable(ctx, conn, missing)
	}
	if s.dialect.rotates() {
		if err := s.otherForm(ctx, conn, nil); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(flaws...); err != nil {
		return nil, fmt.Errorf("%w: %w", inbox.ErrNoTable, err)
	}
	s.table.Store(t)
	return t, nil
}

// tables are the names of those that the inbox consists of.
func (s *Store) tables() []string {
	if s.dialect.rotates() {
		return []string{s.cfg.Table + current, s.cfg.Table + previous}
	}
	return []string{s.cfg.Table}
}

// read adds what one definition says; flawed is what is wrong with that.
func (t *table) read(ctx context.Context, conn queryer, definition string) (exists bool, flawed, err error) {
	rows, err := conn.QueryContext(ctx, definition)
	if err != nil {
		return false, nil, err
	}
	defer rows.Close() //nolint:errcheck // reported by rows.Err
	var flaws []error
	found := map[string]bool{}
	for rows.Next() {
		var column, flaw string
		var limit int
		if err := rows.Scan(&column, &limit, &flaw, &t.server); err != nil {
			return false, nil, err
		}
		found[column] = true
		if known := t.limits[column]; known == 0 || (limit > 0 && limit < known) {
			t.limits[column] = limit
		}
		if flaw != "" {
			flaws = append(flaws, fmt.Errorf("column %s %s", column, flaw))
		}
	}
	if err := rows.Err(); err != nil {
		return false, nil, err
	}
	for _, c := range columns {
		if !found[c] {
			flaws = append(flaws, fmt.Errorf("column %s is missing: the table is of another version; compare it with inboxsql.Schema", c))
		}
	}
	return len(found) > 0, errors.Join(flaws...), nil
}

func (s *Store) noTable(ctx context.Context, conn queryer, missing []string) error {
	if err := s.otherForm(ctx, conn, missing); err != nil {
		return err
	}
	hint := ""
	if s.dialect.name == SQLite {
		hint = "; a :memory: database is another one for each connection, so call SetMaxOpenConns(1)"
	}
	return fmt.Errorf("%w: there is no table %s in this database: put the statements of inboxsql.Schema(%q, %q) into a migration, or call Store.CreateTable in a demo or test%s",
		inbox.ErrNoTable, strings.Join(missing, " and no table "), s.dialect.name, s.cfg.Table, hint)
}

// otherForm returns an error if the table is there as another dialect has it.
func (s *Store) otherForm(ctx context.Context, conn queryer, missing []string) error {
	if s.dialect.other == "" {
		return nil
	}
	rows, err := conn.QueryContext(ctx, s.dialect.other)
	if err != nil {
		return fmt.Errorf("look for the table of another dialect: %w", err)
	}
	defer rows.Close() //nolint:errcheck // reported by rows.Err
	if !rows.Next() {
		return rows.Err()
	}
	other := &otherFormError{table: s.cfg.Table, want: s.dialect.name, missing: missing}
	if err := rows.Scan(&other.there); err != nil {
		return fmt.Errorf("look for the table of another dialect: %w", err)
	}
	return other
}

// otherFormError is [inbox.ErrNoTable] where the keys are in the table of another
// dialect, beside that of this one or instead of it.
type otherFormError struct {
	table       string
	there, want Dialect
	missing     []string
}

func (e *otherFormError) Error() string {
	beside, first := "beside", "drop the tables of the one dialect, which would hide the keys of the other, then "
	if len(e.missing) > 0 {
		beside, first = "instead of table "+strings.Join(e.missing, " and table "), ""
	}
	return fmt.Sprintf("%v: inbox %s is in the form of dialect %s, %s that of %s: %sput the statements of inboxsql.Conversion(%q, %q, %q) into a migration, or set Config.Dialect to %q",
		inbox.ErrNoTable, e.table, e.there, beside, e.want, first, e.there, e.want, e.table, e.there)
}

func (e *otherFormError) Unwrap() error { return inbox.ErrNoTable }

// fits returns a permanent error if a part of key is longer than its column,
// which some databases would cut without a word.
func (t *table) fits(key inbox.Key) error {
	for _, p := range [...]struct {
		column, value string
		most          int
	}{
		{"consumer", key.Consumer, inbox.MaxConsumer},
		{"source", key.Source, inbox.MaxSource},
		{"message_id", key.MessageID, inbox.MaxMessageID},
	} {
		most := p.most
		if limit := t.limits[p.column]; limit > 0 {
			most = min(most, limit)
		}
		if len(p.value) > most {
			return &inbox.KeyError{Key: key, Part: strings.ReplaceAll(p.column, "_", " "), Reason: fmt.Sprintf("the %s has %d bytes and its column holds %d: use Hashed, or a shorter name",
				strings.ReplaceAll(p.column, "_", " "), len(p.value), most)}
		}
	}
	return nil
}
