package inboxsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/watermill-inbox/inbox"
)

// Check implements [inbox.Checker]. It looks at the table (there, of this
// version, with columns that keep every id apart and an engine that rolls back),
// at the durability and isolation that the guarantee rests on, and at the pool.
// Settings that a session can change are those of the connection that it got.
func (s *Store) Check(ctx context.Context) ([]inbox.Finding, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("inboxsql: check: %w", err)
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	s.table.Store(nil) // look again: a migration may have run since
	switch _, err = s.describe(ctx, conn); {
	case errors.Is(err, inbox.ErrNoTable):
		remedy, failed := s.remedy(err)
		if failed != nil {
			return nil, failed
		}
		f := inbox.Finding{Fatal: true, Problem: err.Error(), Remedy: remedy}
		return append([]inbox.Finding{f}, s.pool()...), nil
	case err != nil:
		return nil, fmt.Errorf("inboxsql: check: %w", err)
	}
	findings, err := s.perConnection(ctx)
	if err != nil {
		return nil, fmt.Errorf("inboxsql: check: %w", err)
	}
	settings, err := s.settings(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("inboxsql: check: %w", err)
	}
	return slices.Concat(findings, settings, s.pool()), nil
}

// remedy returns the statements that mend a table that is missing or wrong.
func (s *Store) remedy(err error) (string, error) {
	if other := (*otherFormError)(nil); errors.As(err, &other) {
		text, failed := Conversion(other.there, other.want, s.cfg.Table)
		return "the conversion is:\n" + text, failed
	}
	ddl, err := s.dialect.schema(s.cfg.Table)
	return "the table of this version is:\n" + ddl, err
}

// perConnection asks a second connection for the table that the first one has,
// where that may be another database.
func (s *Store) perConnection(ctx context.Context) ([]inbox.Finding, error) {
	if s.dialect.name != SQLite || s.db.Stats().MaxOpenConnections == 1 {
		return nil, nil
	}
	second, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer second.Close() //nolint:errcheck // gives the connection back
	first := s.table.Swap(nil)
	defer s.table.Store(first)
	if _, err := s.describe(ctx, second); errors.Is(err, inbox.ErrNoTable) {
		return []inbox.Finding{{
			Fatal:   true,
			Problem: "a second connection does not see the table: a :memory: database is another one for each connection, so that no duplicate would be found",
			Remedy:  "SetMaxOpenConns(1), or use a file",
		}}, nil
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (s *Store) settings(ctx context.Context, conn queryer) ([]inbox.Finding, error) {
	rows, err := conn.QueryContext(ctx, s.dialect.advise)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	defer rows.Close() //nolint:errcheck // reported by rows.Err
	var findings []inbox.Finding
	for rows.Next() {
		var f inbox.Finding
		if err := rows.Scan(&f.Fatal, &f.Problem, &f.Remedy); err != nil {
			return nil, fmt.Errorf("read the settings: %w", err)
		}
		findings = append(findings, f)
	}
	return findings, rows.Err()
}

// pool judges the pool's size, which only the caller can relate to the number of
// deliveries.
func (s *Store) pool() []inbox.Finding {
	most := s.db.Stats().MaxOpenConnections
	if most == 0 || s.cfg.Deliveries == 0 {
		return nil
	}
	switch {
	case most < s.cfg.Deliveries:
		return []inbox.Finding{{
			Problem: fmt.Sprintf("the pool has %d connections for %d concurrent deliveries: the others wait, and a handler that queries the pool while its transaction is open hangs for ever", most, s.cfg.Deliveries),
			Remedy:  fmt.Sprintf("SetMaxOpenConns(%d) or more, and use only the transaction of the context in handlers", s.cfg.Deliveries+1),
		}}
	case most == s.cfg.Deliveries:
		return []inbox.Finding{{
			Problem: fmt.Sprintf("each of the pool's %d connections can be held by a delivery: a handler, or a subscriber of the same database, that needs one more hangs while all are busy", most),
			Remedy:  fmt.Sprintf("SetMaxOpenConns(%d) or more", s.cfg.Deliveries+1),
		}}
	}
	return nil
}
