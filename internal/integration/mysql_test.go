package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
	"github.com/watermill-inbox/inbox/internal/sqltest"
	"github.com/watermill-inbox/inbox/testutil"
)

// mariadb is MariaDB with changes to the configuration of the driver.
func mariadb(t *testing.T, configure func(*mysql.Config)) sqltest.Database {
	t.Helper()
	servers.MariaDB.Need(t)
	return sqltest.Database{
		Dialect: inboxsql.MySQL,
		Place: func(t *testing.T) func() *sql.DB {
			t.Helper()
			connector, err := mysql.NewConnector(mysqlConfig(t, configure))
			if err != nil {
				t.Fatal(err)
			}
			return func() *sql.DB { return closing(t, sql.OpenDB(connector)) }
		},
		Lacks: map[testutil.Ability]string{
			testutil.CanPoison: "MySQL and MariaDB commit what a failed statement left",
		},
		Swallow: mariadbSwallow,
		Ends: func(tables *sqltest.Tables) map[string]testutil.End {
			return map[string]testutil.End{
				"a deadlock": {Do: func(ctx context.Context) error { return deadlock(ctx, tables) }},
				"DDL": {Commits: true, Do: func(ctx context.Context) error {
					_, err := exec(ctx, "DROP TABLE IF EXISTS "+tables.Inbox+"_none")
					return err
				}},
				"COMMIT as a statement": {Commits: true, Do: func(ctx context.Context) error {
					_, err := exec(ctx, "COMMIT")
					return err
				}},
				"ROLLBACK as a statement": {Do: func(ctx context.Context) error {
					_, err := exec(ctx, "ROLLBACK")
					return err
				}},
			}
		},
	}
}

func mysqlConfig(t *testing.T, configure func(*mysql.Config)) *mysql.Config {
	t.Helper()
	c, err := mysql.ParseDSN(servers.MariaDB.Address())
	if err != nil {
		t.Fatalf("%s: %v", servers.MariaDB.Env, err)
	}
	if configure != nil {
		configure(c)
	}
	return c
}

// mariadbSwallow has a trigger spoil the row, such that a foreign key refuses it:
// under INSERT IGNORE that is a warning. A rollback does not turn the sequence back.
func mariadbSwallow(tables *sqltest.Tables, inserts int) {
	name := tables.Inbox + "_swallow"
	tables.Exec("CREATE SEQUENCE " + name)
	tables.Cleanup("DROP SEQUENCE " + name)
	tables.Exec("CREATE TABLE " + name + "_sources (source VARBINARY(255) NOT NULL PRIMARY KEY)")
	tables.Cleanup("DROP TABLE " + name + "_sources")
	tables.Exec("INSERT INTO " + name + "_sources VALUES ('')")
	tables.Exec(fmt.Sprintf("ALTER TABLE %[2]s ADD CONSTRAINT %[1]s FOREIGN KEY (source) REFERENCES %[1]s_sources (source)", name, tables.Inbox))
	tables.Cleanup(fmt.Sprintf("ALTER TABLE %[2]s DROP FOREIGN KEY %[1]s", name, tables.Inbox))
	tables.Exec(fmt.Sprintf("CREATE TRIGGER %[1]s BEFORE INSERT ON %[2]s FOR EACH ROW SET NEW.source = IF(%[3]d < 0 OR NEXTVAL(%[1]s) <= %[3]d, 'swallowed', NEW.source)",
		name, tables.Inbox, inserts))
	tables.Cleanup("DROP TRIGGER " + name)
}

// deadlock makes the transaction of ctx the victim of a deadlock, which ends it.
func deadlock(ctx context.Context, tables *sqltest.Tables) error {
	other, err := tables.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer other.Rollback()
	// The server ends the transaction that has changed less.
	heavy := "INSERT INTO " + tables.EffectsTable() + " (id) VALUES ('heavy')" + strings.Repeat(", ('heavy')", 200)
	for _, statement := range []string{heavy, "INSERT INTO " + tables.UniqueTable() + " (id) VALUES ('other')"} {
		if _, err = other.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	lock := func(id string) string {
		return "SELECT id FROM " + tables.UniqueTable() + " WHERE id = '" + id + "' FOR UPDATE"
	}
	if _, err = exec(ctx, lock("taken")); err != nil {
		return err
	}
	waited := make(chan error, 1)
	go func() {
		_, failed := other.ExecContext(ctx, lock("taken"))
		waited <- failed
	}()
	_, err = exec(ctx, lock("other"))
	var victim *mysql.MySQLError
	if !errors.As(err, &victim) || victim.Number != 1213 {
		return fmt.Errorf("want a deadlock, got %w", errors.Join(err, <-waited))
	}
	return <-waited
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, mariadb(t, nil).Harness())
}
