package integration_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/testutil"
)

// The options of a DSN change what affected rows are, how values travel and what
// a server refuses. None may change what a duplicate is.

func TestMariaDBOptions(t *testing.T) {
	t.Parallel()
	for _, foundRows := range []bool{false, true} {
		for _, interpolate := range []bool{false, true} {
			for _, lax := range []bool{false, true} {
				if !foundRows && !interpolate && !lax {
					continue // TestMariaDB
				}
				t.Run(fmt.Sprintf("clientFoundRows=%t interpolateParams=%t lax=%t", foundRows, interpolate, lax), func(t *testing.T) {
					t.Parallel()
					testutil.RunStoreTests(t, mariadb(t, func(c *mysql.Config) {
						c.ClientFoundRows, c.InterpolateParams = foundRows, interpolate
						if lax {
							c.Params = map[string]string{"sql_mode": "''"}
						}
					}).Harness())
				})
			}
		}
	}
}

func TestMariaDBTimes(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, mariadb(t, func(c *mysql.Config) {
		c.ParseTime = true
		c.Params = map[string]string{"time_zone": "'+11:00'"}
	}).Harness())
}

func TestPostgresThroughPgxModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} { // cache_statement is the default
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			testutil.RunStoreTests(t, postgres(t, "pgx", map[string]string{"default_query_exec_mode": mode}).Harness())
		})
	}
}

func TestRotatingThroughPgxModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			testutil.RunStoreTests(t, rotating(postgres(t, "pgx", map[string]string{"default_query_exec_mode": mode})).Harness())
		})
	}
}

func TestPostgresThroughPqBinary(t *testing.T) {
	t.Parallel()
	testutil.RunStoreTests(t, postgres(t, "postgres", map[string]string{"binary_parameters": "yes", "timezone": "Asia/Kolkata"}).Harness())
}

// READ COMMITTED is PostgreSQL's default, and REPEATABLE READ that of MariaDB.
func TestIsolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level    sql.IsolationLevel
		database reach
	}{
		"REPEATABLE READ on pgx":    {sql.LevelRepeatableRead, throughPgx},
		"SERIALIZABLE on pgx":       {sql.LevelSerializable, throughPgx},
		"SERIALIZABLE on pq":        {sql.LevelSerializable, throughPq},
		"READ COMMITTED on MariaDB": {sql.LevelReadCommitted, onMariaDB},
		"SERIALIZABLE on MariaDB":   {sql.LevelSerializable, onMariaDB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := c.database(t)
			d.Configure = func(s *inboxsql.Config) { s.TxOptions = &sql.TxOptions{Isolation: c.level} }
			testutil.RunStoreTests(t, d.Harness())
		})
	}
}
