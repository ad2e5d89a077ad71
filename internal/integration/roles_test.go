package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/watermill-inbox/inbox/internal/sqltest"
)

// role is a login of the test's own, which has no right but those that it is given.
type role struct {
	t        *testing.T
	name     string // as a statement has it
	admin    *sql.DB
	login    func(t *testing.T) *sql.DB
	handlers []string // the rights that a handler of the suite needs on tables of its own
}

// postgresRole makes a role of PostgreSQL.
func postgresRole(t *testing.T) *role {
	t.Helper()
	name, password := fmt.Sprintf("inbox_%012x", rand.Uint64()>>16), strconv.FormatUint(rand.Uint64(), 16) //nolint:gosec // lives as long as the test
	r := &role{t: t, name: name, admin: open(t, "pgx", postgresDSN(t, nil)), handlers: []string{
		"GRANT ALL ON {table}_effects, {table}_unique TO {role}",
	}}
	r.exec("CREATE ROLE " + name + " LOGIN PASSWORD '" + password + "'")
	t.Cleanup(func() {
		r.exec("DROP OWNED BY " + name)
		r.exec("DROP ROLE " + name)
	})
	u, err := url.Parse(postgresDSN(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, password)
	r.login = func(t *testing.T) *sql.DB { t.Helper(); return open(t, "pgx", u.String()) }
	return r
}

// mariadbRole makes a user of MariaDB.
func mariadbRole(t *testing.T) *role {
	t.Helper()
	name, password := fmt.Sprintf("inbox_%012x", rand.Uint64()>>16), strconv.FormatUint(rand.Uint64(), 16) //nolint:gosec // lives as long as the test
	r := &role{t: t, name: "'" + name + "'@'%'", admin: open(t, "mysql", mysqlConfig(t, nil).FormatDSN()), handlers: []string{
		"GRANT ALL ON {table}_effects TO {role}",
		"GRANT ALL ON {table}_unique TO {role}",
		"GRANT CREATE, DROP ON {table}_none TO {role}", // of the case in which a handler runs DDL
	}}
	r.exec("CREATE USER " + r.name + " IDENTIFIED BY '" + password + "'")
	t.Cleanup(func() { r.exec("DROP USER " + r.name) })
	dsn := mysqlConfig(t, func(c *mysql.Config) { c.User, c.Passwd = name, password }).FormatDSN()
	r.login = func(t *testing.T) *sql.DB { t.Helper(); return open(t, "mysql", dsn) }
	return r
}

// admit returns what lets the stores of d run as r, with these grants.
func (r *role) admit(grants ...string) func(*testing.T, *sqltest.Tables) func() *sql.DB {
	return func(t *testing.T, tables *sqltest.Tables) func() *sql.DB {
		t.Helper()
		for _, grant := range append(grants, r.handlers...) {
			r.exec(r.on(tables.Inbox, grant))
		}
		return func() *sql.DB { return r.login(t) }
	}
}

// on names the tables and the role in a statement.
func (r *role) on(table, statement string) string {
	statement = strings.NewReplacer("{table}", table, "{role}", r.name, "inbox_messages", table).Replace(statement)
	for _, placeholder := range []string{"service", "cleaner"} {
		statement = strings.Replace(statement, " TO "+placeholder, " TO "+r.name, 1)
	}
	return statement
}

func (r *role) exec(statement string) {
	r.t.Helper()
	if _, err := r.admin.ExecContext(context.Background(), statement); err != nil {
		r.t.Errorf("%s: %v", statement, err)
	}
}

// grant reads a statement from docs/databases.md by the comment above it.
func grant(t *testing.T, title string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/databases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```sql\n-- "+title+"\n")
	statement, _, closed := strings.Cut(after, ";\n```")
	if !found || !closed || strings.Count(statement, "GRANT") != 1 {
		t.Fatalf("docs/databases.md has no one statement under %q", title)
	}
	return statement
}
