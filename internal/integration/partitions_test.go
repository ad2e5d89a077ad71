package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
)

const inboxColumns = "event_type %[1]s, outcome %[1]s, result %[2]s, produced %[2]s, fingerprint %[3]s"

// The usual advice for tables that grow is to partition them by time. The primary
// key then has to contain the time, and is no key of the message any more.
func TestPartitionsByTimeLetADuplicatePass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database reach
		ddl      []string
		insert   string
	}{
		"PostgreSQL": {
			database: throughPgx,
			ddl: []string{
				`CREATE TABLE %[1]s (consumer text COLLATE "C" NOT NULL, source text COLLATE "C" NOT NULL, message_id text COLLATE "C" NOT NULL,
					received_at timestamptz NOT NULL, processed_at timestamptz NOT NULL, ` + fmt.Sprintf(inboxColumns, "text", "bytea", "bytea") + `,
					PRIMARY KEY (consumer, source, message_id, received_at)) PARTITION BY RANGE (received_at)`,
				"CREATE TABLE %[1]s_1 PARTITION OF %[1]s FOR VALUES FROM ('2026-11-01') TO ('2026-12-01')",
				"CREATE TABLE %[1]s_2 PARTITION OF %[1]s FOR VALUES FROM ('2026-12-01') TO ('2027-01-01')",
			},
			insert: "INSERT INTO %[1]s (consumer, source, message_id, received_at, processed_at) VALUES ('invoices', '', '1', '%[2]s', '%[2]s') ON CONFLICT DO NOTHING",
		},
		"MariaDB": {
			database: onMariaDB,
			ddl: []string{
				`CREATE TABLE %[1]s (consumer VARBINARY(255) NOT NULL, source VARBINARY(255) NOT NULL, message_id VARBINARY(512) NOT NULL,
					received_at DATETIME(6) NOT NULL, processed_at DATETIME(6) NOT NULL, ` + fmt.Sprintf(inboxColumns, "VARCHAR(255)", "LONGBLOB", "VARBINARY(64)") + `,
					PRIMARY KEY (consumer, source, message_id, received_at)) ENGINE=InnoDB
					PARTITION BY RANGE COLUMNS (received_at) (PARTITION p1 VALUES LESS THAN ('2026-12-01'), PARTITION p2 VALUES LESS THAN ('2027-01-01'))`,
			},
			insert: "INSERT IGNORE INTO %[1]s (consumer, source, message_id, received_at, processed_at) VALUES ('invoices', '', '1', '%[2]s', '%[2]s')",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := c.database(t)
			db, table := place.Place(t)(), someTable()
			for _, statement := range c.ddl {
				mustExec(t, db, fmt.Sprintf(statement, table))
			}
			drop(t, db, "TABLE "+table)
			for _, at := range []string{"2026-11-30 23:59:59", "2026-12-01 00:00:01"} {
				result := mustExec(t, db, fmt.Sprintf(c.insert, table, at))
				if n, err := result.RowsAffected(); err != nil || n != 1 {
					t.Errorf("at %s: %d rows, error %v: the trap is gone, so may be what is said of it", at, n, err)
				}
			}
			s := inboxsql.MustNew(db, &inboxsql.Config{Dialect: place.Dialect, Table: table})
			findings, err := s.Check(t.Context())
			if err != nil || len(findings) == 0 || !findings[0].Fatal || !strings.Contains(findings[0].Problem, "partitioned by") || !strings.Contains(findings[0].Problem, "received_at") {
				t.Errorf("the check finds %v, error %v", findings, err)
			}
			if _, err := process(t.Context(), s, "2"); !errors.Is(err, inbox.ErrNoTable) {
				t.Errorf("a delivery gives %v, want %q", err, inbox.ErrNoTable)
			}
		})
	}
}

// UUIDs of version 7 begin with their time, so that a partition of ids is one of
// times, and the key stays what it is. The DDL is that of docs/retention.md.
func TestPartitionsByIDKeepTheKey(t *testing.T) {
	t.Parallel()
	place := throughPgx(t)
	db, table := place.Place(t)(), someTable()
	for _, statement := range []string{
		`CREATE TABLE %[1]s (consumer text COLLATE "C" NOT NULL, source text COLLATE "C" NOT NULL, message_id text COLLATE "C" NOT NULL,
			received_at timestamptz NOT NULL, processed_at timestamptz NOT NULL, ` + fmt.Sprintf(inboxColumns, "text", "bytea", "bytea") + `,
			PRIMARY KEY (consumer, source, message_id)) PARTITION BY RANGE (message_id)`,
		"CREATE INDEX ON %[1]s (received_at)",
		"CREATE TABLE %[1]s_2026_11 PARTITION OF %[1]s FOR VALUES FROM ('01a19467-e800') TO ('01a22ee6-b000')",
		"CREATE TABLE %[1]s_2026_12 PARTITION OF %[1]s FOR VALUES FROM ('01a22ee6-b000') TO ('01a2ce8b-d400')",
		"CREATE TABLE %[1]s_other PARTITION OF %[1]s DEFAULT",
	} {
		mustExec(t, db, fmt.Sprintf(statement, table))
	}
	drop(t, db, "TABLE "+table)
	s := inboxsql.MustNew(db, &inboxsql.Config{Dialect: place.Dialect, Table: table})
	findings, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Fatal {
			t.Errorf("the check finds %s", f)
		}
	}
	ids := []string{"01a22ee6-afff-7cc3-98c4-dc0c0c07398f", "01a22ee6-b000-7cc3-98c4-dc0c0c07398f", "no-uuid"}
	for _, want := range []bool{false, true} {
		for _, id := range ids {
			if duplicate, err := process(t.Context(), s, id); err != nil || duplicate != want {
				t.Errorf("%s: duplicate %t, error %v, want %t", id, duplicate, err, want)
			}
		}
	}
	for _, partition := range []string{"_2026_11", "_2026_12", "_other"} {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+partition).Scan(&n); err != nil || n != 1 {
			t.Errorf("partition %s has %d rows, error %v", partition, n, err)
		}
	}
}

func mustExec(t *testing.T, db *sql.DB, statement string) sql.Result {
	t.Helper()
	result, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return result
}
