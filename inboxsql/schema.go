package inboxsql

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"
)

// SchemaFS holds the statements that create the table under its default name, as
// schema/postgres.sql, schema/postgres_rotating.sql, schema/mysql.sql and
// schema/sqlite.sql. Text of [Schema] for other names.
//
//go:embed schema/*.sql
var SchemaFS embed.FS

// Schema returns the statements that create the inbox table, and its index, of
// [PostgresRotating] the two tables with theirs,
// under the given name unless they exist: text for a migration. An empty table
// is [DefaultTable]. It fails for an unknown dialect and for a name that Config
// would refuse.
func Schema(d Dialect, table string) (string, error) {
	c := Config{Table: table}.withDefaults()
	if err := c.validate(); err != nil {
		return "", fmt.Errorf("inboxsql: %w", err)
	}
	dialect, err := dialectNamed(d)
	if err != nil {
		return "", err
	}
	return dialect.schema(c.Table)
}

func (d *dialect) schema(table string) (string, error) {
	text, err := SchemaFS.ReadFile("schema/" + string(d.name) + ".sql")
	if err != nil {
		return "", fmt.Errorf("inboxsql: schema of %s: %w", d.name, err)
	}
	index, on := table+"_received_at", table
	if i := strings.IndexByte(table, '.'); i >= 0 {
		if d.name == SQLite { // the schema is written at the index, not at its table
			on = table[i+1:]
		} else {
			index = index[i+1:]
		}
	}
	names := []string{DefaultTable + "_received_at", d.ident(index)}
	for _, suffix := range []string{"_pkey_1", "_pkey_2", "_received_1", "_received_2"} {
		names = append(names, DefaultTable+suffix, d.ident(table[strings.IndexByte(table, '.')+1:]+suffix))
	}
	for _, suffix := range []string{current, previous} {
		names = append(names, "ON "+DefaultTable+suffix, "ON "+d.ident(on+suffix), DefaultTable+suffix, d.ident(table+suffix))
	}
	names = append(names, "ON "+DefaultTable, "ON "+d.ident(on), DefaultTable, d.ident(table))
	return strings.NewReplacer(names...).Replace(string(text)), nil
}

// CreateTable creates the table unless it exists, for demos and tests; a
// production database gets it by migration, from [Schema]. Repeated and
// concurrent calls are fine. An existing table is not changed, whatever it looks
// like: [Store.Check] looks at it. Where [Postgres] and [PostgresRotating] would be
// side by side under one name it fails with [inbox.ErrNoTable]: see [Conversion].
func (s *Store) CreateTable(ctx context.Context) error {
	ddl, err := s.dialect.schema(s.cfg.Table)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(max(s.cfg.Wait, 0))
	for attempt := 1; ; attempt++ {
		err := s.createTable(ctx, ddl)
		if err == nil {
			return nil
		}
		if s.dialect.classify(err) != kindBusy || time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("inboxsql: create table %s: %w", s.cfg.Table, err)
		}
		pause(ctx, attempt)
	}
}

func (s *Store) createTable(ctx context.Context, ddl string) error {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if s.dialect.lock != "" {
		if _, err := tx.ExecContext(ctx, s.dialect.lock); err != nil {
			return err
		}
	}
	// Beside the table of another dialect it would hide the keys that are there.
	if err := s.otherForm(ctx, tx, nil); err != nil {
		return err
	}
	if err := each(ctx, tx, ddl); err != nil {
		return err
	}
	return tx.Commit()
}
