package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqltest"
)

// databases are all there are, by the name of a subtest.
func databases() map[string]reach {
	all := onServers()
	all["SQLite"] = onSQLite
	return all
}

func someTable() string {
	return fmt.Sprintf("inbox_%012x", rand.Uint64()>>16) //nolint:gosec // a name, not a secret
}

// drop removes a table when the test ends.
func drop(t *testing.T, db *sql.DB, what string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "DROP "+what); err != nil {
			t.Error(err)
		}
	})
}

func process(ctx context.Context, s *inboxsql.Store, id string) (duplicate bool, err error) {
	_, duplicate, err = s.Once(ctx, d(id), func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil })
	return duplicate, err
}

func TestMissingTable(t *testing.T) {
	t.Parallel()
	for name, database := range andRotating(databases()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			db := place.Place(t)()
			table := someTable()
			s := inboxsql.MustNew(db, &inboxsql.Config{Dialect: place.Dialect, Table: table})
			mustMiss := func() {
				t.Helper()
				_, err := process(t.Context(), s, "1")
				if !errors.Is(err, inbox.ErrNoTable) {
					t.Fatalf("got %v, want %q", err, inbox.ErrNoTable)
				}
				for _, help := range []string{table, "inboxsql.Schema", "CreateTable"} {
					if !strings.Contains(err.Error(), help) {
						t.Errorf("error %q does not say %s", err, help)
					}
				}
			}
			mustMiss()
			if findings, err := s.Check(t.Context()); err != nil || len(findings) == 0 || !findings[0].Fatal || !strings.Contains(findings[0].Remedy, "CREATE TABLE") {
				t.Errorf("the check found %v, %v, want the missing table first, and its statements", findings, err)
			}
			for range 2 {
				if err := s.CreateTable(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, own := range sqltest.Names(place.Dialect, table) {
				drop(t, db, "TABLE IF EXISTS "+own)
			}
			for _, want := range []bool{false, true} {
				if duplicate, err := process(t.Context(), s, "1"); err != nil || duplicate != want {
					t.Fatalf("got duplicate %v, error %v, want %v", duplicate, err, want)
				}
			}
			// A store that knew the table says the same when it goes.
			for _, own := range sqltest.Names(place.Dialect, table) {
				if _, err := db.ExecContext(t.Context(), "DROP TABLE "+own); err != nil {
					t.Fatal(err)
				}
			}
			if place.Dialect == inboxsql.SQLite { // which has no code for it: the next delivery knows
				if _, err := process(t.Context(), s, "2"); err == nil {
					t.Fatal("a delivery without a table was processed")
				}
			}
			mustMiss()
			if err := s.CreateTable(t.Context()); err != nil {
				t.Fatal(err)
			}
			if duplicate, err := process(t.Context(), s, "1"); err != nil || duplicate {
				t.Fatalf("got duplicate %v, error %v, want a first delivery", duplicate, err)
			}
		})
	}
}

func TestCreateTableAtOnce(t *testing.T) {
	t.Parallel()
	for name, database := range andRotating(databases()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			table := someTable()
			open := place.Place(t)
			db := open()
			for _, own := range sqltest.Names(place.Dialect, table) {
				drop(t, db, "TABLE IF EXISTS "+own)
			}
			const n = 8
			errs := make(chan error, n)
			for range n {
				s := inboxsql.MustNew(db, &inboxsql.Config{Dialect: place.Dialect, Table: table})
				go func() { errs <- s.CreateTable(t.Context()) }()
			}
			for range n {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			s := inboxsql.MustNew(db, &inboxsql.Config{Dialect: place.Dialect, Table: table})
			findings, err := s.Check(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, f := range findings {
				if f.Fatal || strings.Contains(f.Problem, "index") {
					t.Errorf("the check found: %s", f)
				}
			}
		})
	}
}

func TestTableInSchema(t *testing.T) {
	t.Parallel()
	for name, database := range andRotating(databases()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			db := place.Place(t)()
			db.SetMaxOpenConns(1) // an attached database is one connection's
			schema := someTable()
			create, remove := "CREATE SCHEMA "+schema, "SCHEMA "+schema //nolint:gosec // a name made here
			switch place.Dialect {
			case inboxsql.Postgres, inboxsql.PostgresRotating:
				remove += " CASCADE"
			case inboxsql.SQLite:
				create, remove = "ATTACH ':memory:' AS "+schema, ""
			case inboxsql.MySQL:
			}
			if _, err := db.ExecContext(t.Context(), create); err != nil {
				t.Fatal(err)
			}
			if remove != "" {
				drop(t, db, remove)
			}
			s := inboxsql.MustNew(db, &inboxsql.Config{Dialect: place.Dialect, Table: schema + ".inbox"})
			for range 2 {
				if err := s.CreateTable(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range []bool{false, true, true} {
				if duplicate, err := process(t.Context(), s, "1"); err != nil || duplicate != want {
					t.Fatalf("got duplicate %v, error %v, want %v", duplicate, err, want)
				}
			}
			var rows int
			count := "SELECT COUNT(*) FROM " + sqltest.Names(place.Dialect, schema+".inbox")[0]
			if err := db.QueryRowContext(t.Context(), count).Scan(&rows); err != nil || rows != 1 {
				t.Errorf("got %d rows, %v, want 1", rows, err)
			}
			findings, err := s.Check(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, f := range findings {
				if f.Fatal || strings.Contains(f.Problem, "index") {
					t.Errorf("the check found: %s", f)
				}
			}
		})
	}
}

// TestWrongTable has tables that would lose messages: each must be refused, by
// each delivery and by the check, before anything runs.
func TestWrongTable(t *testing.T) {
	t.Parallel()
	replace := func(from, to string) func(string) string {
		return func(ddl string) string { return strings.ReplaceAll(ddl, from, to) }
	}
	for name, c := range map[string]struct {
		database reach
		change   func(ddl string) string
		names    string // what the error has to name
	}{
		"MariaDB: an engine that does not roll back": {
			onMariaDB, replace("ENGINE=InnoDB", "ENGINE=Aria"), "Aria",
		},
		"MariaDB: ids that differ in case are merged": {
			onMariaDB, replace("VARBINARY(512)", "VARCHAR(191)"), "message_id",
		},
		"MariaDB: trailing blanks are merged": {
			onMariaDB, replace("VARBINARY(512)", "VARCHAR(191) COLLATE utf8mb4_bin"), "message_id",
		},
		"MariaDB: ids are cut": {
			onMariaDB, replace("VARBINARY(512)", "BINARY(16)"), "message_id",
		},
		"MariaDB: no unique key": {
			onMariaDB, replace("PRIMARY KEY (", "KEY ("), "primary key",
		},
		"MariaDB: a prefix in the key": {
			onMariaDB, replace("source, message_id)", "source, message_id(10))"), "primary key",
		},
		"MariaDB: the consumer is not in the key": {
			onMariaDB, replace("PRIMARY KEY (consumer, ", "PRIMARY KEY ("), "primary key",
		},
		"MariaDB: a column is missing": {
			onMariaDB, replace("    fingerprint  VARBINARY(64),\n", ""), "fingerprint",
		},
		"PostgreSQL: a collation that merges ids": {
			throughPgx, replace(`message_id   text COLLATE "C"`, `message_id   text COLLATE inbox_test_ci`), "message_id",
		},
		"PostgreSQL: ids are padded": {
			throughPgx, replace(`message_id   text COLLATE "C"`, `message_id   char(64)`), "message_id",
		},
		"PostgreSQL: ids are numbers": {
			throughPq, replace(`message_id   text COLLATE "C"`, `message_id   bigint`), "message_id",
		},
		"PostgreSQL: a column is missing": {
			throughPgx, replace("    produced     bytea,\n", ""), "produced",
		},
		"PostgreSQL: no unique key": {
			throughPgx, replace("PRIMARY KEY (consumer, source, message_id)", "CHECK (true)"), "primary key",
		},
		"PostgreSQL, rotating: a column of the previous table is missing": {
			rotatingThroughPgx, func(ddl string) string {
				head, tail, _ := strings.Cut(ddl, "_previous")
				return head + "_previous" + strings.Replace(tail, "    produced     bytea,\n", "", 1)
			}, "_previous: column produced",
		},
		"PostgreSQL, rotating: no unique key on the current table": {
			rotatingThroughPgx, func(ddl string) string {
				head, tail, _ := strings.Cut(ddl, "_previous")
				columns, rest, _ := strings.Cut(head, "CONSTRAINT")
				_, rest, _ = strings.Cut(rest, "\n")
				return columns + "CHECK (true)\n" + rest + "_previous" + tail
			}, "_current: column consumer is not in a primary key",
		},
		"PostgreSQL, rotating: ids of the previous table are padded": {
			rotatingThroughPgx, func(ddl string) string {
				head, tail, _ := strings.Cut(ddl, "_previous")
				return head + "_previous" + strings.Replace(tail, `message_id   text COLLATE "C"`, `message_id   char(64)`, 1)
			}, "_previous: column message_id",
		},
		"SQLite: ids that differ in case are merged": {
			onSQLite, replace("message_id   TEXT NOT NULL", "message_id   TEXT COLLATE NOCASE NOT NULL"), "message_id",
		},
		"SQLite: ids become numbers": {
			onSQLite, replace("message_id   TEXT NOT NULL CHECK (typeof(message_id) = 'text')", "message_id   NUMERIC NOT NULL"), "message_id",
		},
		"SQLite: a column is missing": {
			onSQLite, replace("    outcome      TEXT,\n", ""), "outcome",
		},
		"SQLite: no unique key": {
			onSQLite, func(ddl string) string {
				return strings.NewReplacer(",\n    PRIMARY KEY (consumer, source, message_id)", "", " WITHOUT ROWID", "").Replace(ddl)
			}, "primary key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := c.database(t)
			db := place.Place(t)()
			table := someTable()
			ddl, err := inboxsql.Schema(place.Dialect, table)
			if err != nil {
				t.Fatal(err)
			}
			changed := c.change(ddl)
			if changed == ddl {
				t.Fatalf("the case changes nothing of:\n%s", ddl)
			}
			if strings.Contains(changed, "inbox_test_ci") {
				own := table + "_ci"
				create := "CREATE COLLATION " + own + " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)" //nolint:gosec // a name made here
				if _, err = db.ExecContext(t.Context(), create); err != nil {
					t.Fatal(err)
				}
				drop(t, db, "COLLATION "+own)
				changed = strings.ReplaceAll(changed, "inbox_test_ci", own)
			}
			for _, own := range sqltest.Names(place.Dialect, table) {
				drop(t, db, "TABLE IF EXISTS "+own)
			}
			for statement := range strings.SplitSeq(changed, ";\n") {
				if strings.TrimSpace(statement) == "" {
					continue
				}
				if _, err = db.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			s := inboxsql.MustNew(db, &inboxsql.Config{Dialect: place.Dialect, Table: table})
			for range 2 {
				_, _, err = s.Once(t.Context(), d("1"), func(context.Context) (inbox.Effect, error) {
					t.Error("the handler ran")
					return inbox.Effect{}, nil
				})
				if !errors.Is(err, inbox.ErrNoTable) || !strings.Contains(err.Error(), c.names) {
					t.Fatalf("got %v, want %q that names %s", err, inbox.ErrNoTable, c.names)
				}
			}
			findings, err := s.Check(t.Context())
			if err != nil || len(findings) == 0 || !findings[0].Fatal {
				t.Errorf("the check found %v, %v, want the flaw first", findings, err)
			}
		})
	}
}
