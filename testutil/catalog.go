package testutil

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// catalog is how a database names its tables.
type catalog struct {
	ask     string // a statement that only this database understands
	tables  string // returns schema and name of each table with rows of its own
	read    string // reads rows, given schema, name and how many
	mark    string // around a name
	options *sql.TxOptions
}

// A partition and a table that inherits are tables with rows of their own; what
// stands above them is read without them.
const postgresTables = `SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2`

const mysqlTables = `SELECT table_schema, table_name FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY 1, 2`

const sqliteTables = `SELECT 'main', name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY 2`

func catalogs() []catalog {
	atOneMoment := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	return []catalog{
		{ask: `SELECT sqlite_version()`, tables: sqliteTables, read: `SELECT * FROM %s.%s LIMIT %d`, mark: `"`},
		{ask: `SELECT pg_backend_pid()`, tables: postgresTables, read: `SELECT * FROM ONLY %s.%s LIMIT %d`, mark: `"`, options: atOneMoment},
		{ask: `SELECT @@version`, tables: mysqlTables, read: `SELECT * FROM %s.%s LIMIT %d`, mark: "`", options: atOneMoment},
	}
}

// catalogOf finds the one of db by asking.
func catalogOf(ctx context.Context, db *sql.DB) (catalog, error) {
	if err := db.PingContext(ctx); err != nil {
		return catalog{}, err
	}
	var failed []error
	for _, c := range catalogs() {
		var answer string
		err := db.QueryRowContext(ctx, c.ask).Scan(&answer)
		if err == nil {
			return c, nil
		}
		failed = append(failed, err)
	}
	return catalog{}, errors.Join(append([]error{errors.New("neither PostgreSQL, MySQL nor SQLite")}, failed...)...)
}

type tableName struct{ schema, name string }

func (c catalog) list(ctx context.Context, tx *sql.Tx) ([]tableName, error) {
	found, err := tx.QueryContext(ctx, c.tables)
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // reported by Err
	var all []tableName
	for found.Next() {
		var t tableName
		if err := found.Scan(&t.schema, &t.name); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, found.Err()
}

func (c catalog) quote(name string) string {
	return c.mark + strings.ReplaceAll(name, c.mark, c.mark+c.mark) + c.mark
}
