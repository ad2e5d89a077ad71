package inboxsql

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

type wrappedDriver struct{}

func (wrappedDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("this driver opens nothing")
}

// unopened is a database of a driver that nobody knows.
func unopened(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(unopenedConnector{})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

type unopenedConnector struct{ driver.Connector }

func (unopenedConnector) Driver() driver.Driver { return &wrappedDriver{} }

func TestDialectIsFoundByTheNameThatSqlxKnows(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Dialect{
		"postgres": Postgres,
		"pgx":      Postgres,
		"pgx/v5":   Postgres,
		"mysql":    MySQL,
		"sqlite":   SQLite,
		"sqlite3":  SQLite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := New(sqlx.NewDb(unopened(t), name), nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.dialect.name != want || s.db.DriverName() != name {
				t.Errorf("got %s, and handlers get the driver name %q", s.dialect.name, s.db.DriverName())
			}
		})
	}
}

// Without a name that sqlx knows, NamedExec of the handler's transaction would
// write the wrong placeholders.
func TestHandlersOfAPlainDatabaseGetTransactionsThatSqlxKnows(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		s, err := New(unopened(t), &Config{Dialect: d.name})
		if err != nil {
			t.Fatal(err)
		}
		if got := sqlx.BindType(s.db.DriverName()); got == sqlx.UNKNOWN {
			t.Errorf("%s: sqlx does not know the placeholders of %q", d.name, s.db.DriverName())
		}
	}
}

func TestNoDriverMeansTwoGenerations(t *testing.T) {
	t.Parallel()
	if d := postgresRotating(); len(d.drivers) > 0 {
		t.Errorf("it would be taken for %v", d.drivers)
	}
}

func TestIdent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d           *dialect
		table, want string
	}{
		{postgres(), "inbox", `"inbox"`},
		{postgres(), "shop.inbox", `"shop"."inbox"`},
		{mysql(), "inbox", "`inbox`"},
		{mysql(), "shop.inbox", "`shop`.`inbox`"},
		{sqlite(), "shop.inbox", `"shop"."inbox"`},
	} {
		if got := c.d.ident(c.table); got != c.want {
			t.Errorf("%s: got %s, want %s", c.d.name, got, c.want)
		}
	}
}

func TestMySQLWaitsInWholeSecondsRoundedUp(t *testing.T) {
	t.Parallel()
	d := mysql().prepare("inbox")
	for wait, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, time.Minute: longestWait, time.Hour: longestWait,
	} {
		if got, args := d.waiting(&d.statements, wait); got != d.claims[want] || len(args) > 0 {
			t.Errorf("a wait of %s is not that of %d seconds: %s, %v", wait, want, got, args)
		}
	}
}

func TestPostgresNeverWaitsForEver(t *testing.T) {
	t.Parallel()
	d := postgres().prepare("inbox")
	for wait, want := range map[time.Duration]string{
		-time.Second: "1ms", 0: "1ms", time.Microsecond: "1ms", 1500 * time.Millisecond: "1500ms", time.Hour: "3600000ms",
	} {
		if _, args := d.waiting(&d.statements, wait); len(args) != 1 || args[0] != want {
			t.Errorf("a wait of %s is %v, want %s", wait, args, want)
		}
	}
}

func TestOnlyMariaDBBoundsAClaimOnItsOwn(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{"8.4.3": true, "11.8.2-MariaDB-ubu2404": false, "5.5.5-10.6.18-MariaDB": false} {
		if got := mysql().clientWait(server); got != want {
			t.Errorf("%s: got %v, want %v", server, got, want)
		}
	}
}
