package inboxsql_test

import (
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

func TestSchemaRefusesWhatConfigWouldRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dialect inboxsql.Dialect
		table   string
		says    string
	}{
		"no dialect":                   {"", "inbox", "Config.Dialect"},
		"a dialect that nobody speaks": {"oracle", "inbox", `"oracle"`},
		"a statement as the table":     {inboxsql.Postgres, `inbox"; DROP TABLE orders; --`, "Config.Table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ddl, err := inboxsql.Schema(c.dialect, c.table)
			if ddl != "" {
				t.Errorf("got %s", ddl)
			}
			mustSay(t, err, c.says)
		})
	}
}

func TestSchemaHasTheDefaultTableWithoutAName(t *testing.T) {
	t.Parallel()
	for _, d := range []inboxsql.Dialect{inboxsql.Postgres, inboxsql.PostgresRotating, inboxsql.MySQL, inboxsql.SQLite} {
		got, err := inboxsql.Schema(d, "")
		if err != nil {
			t.Fatal(err)
		}
		want, err := inboxsql.Schema(d, inboxsql.DefaultTable)
		if err != nil || got != want {
			t.Errorf("%s: got\n%s, %v", d, got, err)
		}
		file, err := inboxsql.SchemaFS.ReadFile("schema/" + string(d) + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		if unquoted := strings.NewReplacer(`"`, "", "`", ""); unquoted.Replace(got) != unquoted.Replace(string(file)) {
			t.Errorf("%s: the file differs from\n%s", d, got)
		}
	}
}

func TestConversionRefusesWhatThereIsNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to inboxsql.Dialect
		table    string
		says     string
	}{
		"to itself":                {inboxsql.Postgres, inboxsql.Postgres, "inbox", `"postgres" to "postgres"`},
		"to another database":      {inboxsql.PostgresRotating, inboxsql.MySQL, "inbox", `"postgres_rotating" to "mysql"`},
		"from nothing":             {"", inboxsql.PostgresRotating, "inbox", `"" to`},
		"a statement as the table": {inboxsql.Postgres, inboxsql.PostgresRotating, "inbox; DROP", "Config.Table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := inboxsql.Conversion(c.from, c.to, c.table)
			if text != "" {
				t.Errorf("got %s", text)
			}
			mustSay(t, err, c.says)
		})
	}
}

func TestCreateTable(t *testing.T) {
	t.Parallel()

	t.Run("can be called again, and keeps what is there", func(t *testing.T) {
		t.Parallel()
		s := openShop(t, nil)
		s.mustProcess(t)
		if err := s.store.CreateTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, duplicate, err := s.deliver(t.Context(), mustNotRun(t)); err != nil || !duplicate {
			t.Errorf("got duplicate %v, error %v", duplicate, err)
		}
	})

	t.Run("does not change a table that is there", func(t *testing.T) {
		t.Parallel()
		db := sqlitetest.Open(t, "")
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE inbox_messages (id TEXT, received_at TEXT)"); err != nil {
			t.Fatal(err)
		}
		if err := inboxsql.MustNew(db, nil).CreateTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "INSERT INTO inbox_messages (id) VALUES ('1')"); err != nil {
			t.Error(err)
		}
	})

	t.Run("can be called by several processes at once", func(t *testing.T) {
		t.Parallel()
		db := sqlitetest.Open(t, "")
		const n = 8
		errs := make(chan error, n)
		for range n {
			go func() { errs <- inboxsql.MustNew(db, nil).CreateTable(t.Context()) }()
		}
		for range n {
			if err := await(t, errs); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("creates the table in the schema that it is named with", func(t *testing.T) {
		t.Parallel()
		db := sqlitetest.OpenMemory(t)
		if _, err := db.ExecContext(t.Context(), "ATTACH ':memory:' AS shop"); err != nil {
			t.Fatal(err)
		}
		s := newShop(t, db, &inboxsql.Config{Table: "shop.inbox"})
		s.mustProcess(t)
		if n := s.count(t, `"shop"."inbox"`); n != 1 {
			t.Errorf("shop.inbox has %d keys, want 1", n)
		}
		if n := s.count(t, "shop.sqlite_master WHERE type = 'index' AND name = 'inbox_received_at'"); n != 1 {
			t.Error("the index is not in the schema of its table")
		}
		mustFind(t, s.store)
	})

	t.Run("names the table when it fails", func(t *testing.T) {
		t.Parallel()
		db := sqlitetest.Open(t, "")
		mustSay(t, inboxsql.MustNew(db, &inboxsql.Config{Table: "nowhere.inbox"}).CreateTable(t.Context()), "inboxsql: create table nowhere.inbox")
	})
}
