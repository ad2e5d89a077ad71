package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
	"github.com/watermill-inbox/inbox/internal/sqltest"
	"github.com/watermill-inbox/inbox/testutil"
)

// postgres is PostgreSQL through a driver, with parameters added to the DSN.
func postgres(t *testing.T, driver string, params map[string]string) sqltest.Database {
	t.Helper()
	servers.Postgres.Need(t)
	return sqltest.Database{
		Dialect: inboxsql.Postgres,
		Place: func(t *testing.T) func() *sql.DB {
			t.Helper()
			dsn := postgresDSN(t, params)
			return func() *sql.DB { return open(t, driver, dsn) }
		},
		Swallow: postgresSwallow,
		Poison: func(ctx context.Context, _ *sqltest.Tables) error {
			return sqltest.MustFail(exec(ctx, "SELECT 1/0"))
		},
		Ends: func(*sqltest.Tables) map[string]testutil.End {
			return map[string]testutil.End{
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

// rotating is PostgreSQL with two generations.
func rotating(d sqltest.Database) sqltest.Database {
	d.Dialect = inboxsql.PostgresRotating
	d.Configure = func(c *inboxsql.Config) { c.Dialect = inboxsql.PostgresRotating }
	d.Lacks = map[testutil.Ability]string{testutil.CanSweepSingly: "a rotation removes a whole table at once"}
	return d
}

func postgresDSN(t *testing.T, params map[string]string) string {
	t.Helper()
	u, err := url.Parse(servers.Postgres.Address())
	if err != nil {
		t.Fatalf("%s must be a URL: %v", servers.Postgres.Env, err)
	}
	q := u.Query()
	for name, value := range params {
		q.Set(name, value)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // a plus is no blank to drivers
	return u.String()
}

// postgresSwallow counts with a sequence: a rollback does not turn it back.
func postgresSwallow(tables *sqltest.Tables, inserts int) {
	name := tables.Inbox + "_swallow"
	tables.Exec("CREATE SEQUENCE " + name)
	tables.Cleanup("DROP SEQUENCE " + name)
	tables.Exec(fmt.Sprintf(`CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
		$$BEGIN IF %[2]d < 0 OR nextval('%[1]s') <= %[2]d THEN RETURN NULL; END IF; RETURN NEW; END$$`, name, inserts))
	tables.Cleanup("DROP FUNCTION " + name + " CASCADE")
	tables.Exec(fmt.Sprintf("CREATE TRIGGER %[1]s BEFORE INSERT ON %[2]s FOR EACH ROW EXECUTE FUNCTION %[1]s()", name, tables.Claims()))
}

// exec runs a statement in the transaction of ctx.
func exec(ctx context.Context, statement string) (sql.Result, error) {
	tx, err := inboxsql.StdTx(ctx)
	if err != nil {
		return nil, err
	}
	return tx.ExecContext(ctx, statement)
}

func TestPostgresThroughPgx(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, postgres(t, "pgx", nil).Harness())
}

func TestPostgresThroughPq(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, postgres(t, "postgres", nil).Harness())
}

func TestRotatingThroughPgx(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, rotatingThroughPgx(t).Harness())
}

func TestRotatingThroughPq(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, rotatingThroughPq(t).Harness())
}
