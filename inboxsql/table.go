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
	rows, err := conn.QueryContext(ctx, s.dialect.describe)
	if err != nil {
		return nil, fmt.Errorf("read the definition of table %s: %w", s.cfg.Table, err)
	}
	defer rows.Close() //nolint:errcheck // reported by rows.Err
	t := &table{limits: map[string]int{}}
	var flaws []error
	for rows.Next() {
		var column, flaw string
		var limit int
		if err := rows.Scan(&column, &limit, &flaw, &t.server); err != nil {
			return nil, fmt.Errorf("read the definition of table %s: %w", s.cfg.Table, err)
		}
		t.limits[column] = limit
		if flaw != "" {
			flaws = append(flaws, fmt.Errorf("column %s %s", column, flaw))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the definition of table %s: %w", s.cfg.Table, err)
	}
	if len(t.limits) == 0 {
		return nil, s.noTable()
	}
	for _, c := range columns {
		if _, ok := t.limits[c]; !ok {
			flaws = append(flaws, fmt.Errorf("column %s is missing: the table is of another version; compare it with inboxsql.Schema", c))
		}
	}
	if err := errors.Join(flaws...); err != nil {
		return nil, fmt.Errorf("%w: table %s: %w", inbox.ErrNoTable, s.cfg.Table, err)
	}
	s.table.Store(t)
	return t, nil
}

func (s *Store) noTable() error {
	hint := ""
	if s.dialect.name == SQLite {
		hint = "; a :memory: database is another one for each connection, so call SetMaxOpenConns(1)"
	}
	return fmt.Errorf("%w: there is no table %s in this database: put the statements of inboxsql.Schema(%q, %q) into a migration, or call Store.CreateTable in a demo or test%s",
		inbox.ErrNoTable, s.cfg.Table, s.dialect.name, s.cfg.Table, hint)
}

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
