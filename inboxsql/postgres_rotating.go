package inboxsql

import (
	"database/sql"
	"fmt"
	"strings"
)

// The table of the claims is named before the other one, here and in each statement
// below: that is the order in which a rotation locks them. With the locks the
// statement takes its snapshot, and no rotation comes before the transaction ends. So
// at READ COMMITTED it sees every key that a rotation has moved; a snapshot that
// is older than the locks would not.
const rotatingClaim = `WITH was AS MATERIALIZED (SELECT current_setting('lock_timeout') AS v)
INSERT INTO {current} (consumer, source, message_id, event_type, received_at, processed_at, fingerprint, outcome)
SELECT $1::text, $2::text, $3::text, $4::text, now(), clock_timestamp(), $5::bytea, $6::text FROM was
WHERE set_config('lock_timeout', CASE WHEN v IS NULL THEN v ELSE $7::text END, true) IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM {previous} WHERE consumer = $1::text AND source = $2::text AND message_id = $3::text)
ON CONFLICT (consumer, source, message_id) DO NOTHING
RETURNING (extract(epoch FROM processed_at) * 1000000)::bigint::text || left(set_config('lock_timeout', (SELECT v FROM was), true), 0)`

const rotatingEntry = `SELECT event_type, fingerprint, outcome, result, produced,
       (extract(epoch FROM received_at) * 1000000)::bigint,
       (extract(epoch FROM processed_at) * 1000000)::bigint,
       (extract(epoch FROM clock_timestamp() - processed_at) * 1000000)::bigint
FROM (SELECT * FROM {current} WHERE consumer = $1 AND source = $2 AND message_id = $3
      UNION ALL
      SELECT * FROM {previous} WHERE consumer = $1 AND source = $2 AND message_id = $3) both_tables`

// The row is in the table of the claims as long as the transaction lives. Only a
// handler that ended it lets a rotation in between. Each row that was changed is one
// row of the answer, and so one of those that the command affected.
const rotatingKeep = `WITH younger AS (UPDATE {current} SET result = $1, produced = $2
WHERE consumer = $3 AND source = $4 AND message_id = $5 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $6::text::bigint
RETURNING 1), older AS (UPDATE {previous} SET result = $1, produced = $2
WHERE consumer = $3 AND source = $4 AND message_id = $5 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $6::text::bigint
RETURNING 1) SELECT 1 FROM younger UNION ALL SELECT 1 FROM older`

const rotatingForget = `WITH younger AS (DELETE FROM {current} WHERE consumer = $1 AND source = $2 AND message_id = $3 RETURNING 1),
older AS (DELETE FROM {previous} WHERE consumer = $1 AND source = $2 AND message_id = $3 RETURNING 1)
SELECT 1 FROM younger UNION ALL SELECT 1 FROM older`

const rotatingList = `SELECT consumer, source, message_id, event_type, outcome,
       (extract(epoch FROM received_at) * 1000000)::bigint,
       (extract(epoch FROM processed_at) * 1000000)::bigint,
       (extract(epoch FROM clock_timestamp() - processed_at) * 1000000)::bigint,
       (extract(epoch FROM now()) * 1000000)::bigint
FROM (SELECT * FROM {current} UNION ALL SELECT * FROM {previous}) both_tables
WHERE consumer COLLATE "C" >= $1 AND consumer COLLATE "C" < $2
  AND received_at >= timestamptz 'epoch' + $3::bigint * interval '1 microsecond'
  AND received_at < timestamptz 'epoch' + $4::bigint * interval '1 microsecond' AND received_at <= now()
ORDER BY received_at LIMIT $5`

const rotatingOrphan = `SELECT (SELECT COUNT(*) FROM {current}
WHERE consumer = $1 AND source = $2 AND message_id = $3 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $4::text::bigint)
+ (SELECT COUNT(*) FROM {previous}
WHERE consumer = $1 AND source = $2 AND message_id = $3 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $4::text::bigint)`

const rotatingUnclaim = `WITH younger AS (DELETE FROM {current}
WHERE consumer = $1 AND source = $2 AND message_id = $3 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $4::text::bigint RETURNING 1),
older AS (DELETE FROM {previous}
WHERE consumer = $1 AND source = $2 AND message_id = $3 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $4::text::bigint RETURNING 1)
SELECT 1 FROM younger UNION ALL SELECT 1 FROM older`

// max is read from one end of the index on received_at, whatever the planner knows
// of the tables.
const rotatingDue = `SELECT (SELECT max(received_at) FROM {current}) IS NOT NULL
   AND COALESCE((SELECT max(received_at) FROM {previous}) < now() - $1::bigint * interval '1 microsecond', true),
       COALESCE((SELECT GREATEST(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass('{previous}')), 0)`

// A handler that runs for long, and whoever else has one of the tables, is not
// waited for: all deliveries that begin meanwhile wait behind this.
const rotatingLock = `SET LOCAL lock_timeout = '50ms';
LOCK TABLE {current}, {previous} IN ACCESS EXCLUSIVE MODE`

const rotatingRotate = `TRUNCATE TABLE {previous};
ALTER TABLE {current} RENAME TO "{name}_rotating";
ALTER TABLE {previous} RENAME TO "{name}_current";
ALTER TABLE {in}"{name}_rotating" RENAME TO "{name}_previous"`

const rotatingAdvise = postgresAdviseServer + `
UNION ALL SELECT false, 'table ' || relname || ' is UNLOGGED: a crash of the server empties it, and messages are processed again', 'ALTER TABLE ' || oid::regclass || ' SET LOGGED'
 FROM pg_class WHERE oid IN (to_regclass('{current}'), to_regclass('{previous}')) AND relpersistence = 'u'
UNION ALL SELECT false, 'no index of table ' || relname || ' begins with received_at: each rotation will read the whole table, and deliveries wait for it', 'create the index of inboxsql.Schema'
 FROM pg_class c WHERE oid IN (to_regclass('{current}'), to_regclass('{previous}'))
  AND NOT EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                   WHERE i.indrelid = c.oid AND a.attname = 'received_at')`

// A view of this name over both tables is welcome.
const rotatingOther = `SELECT 'postgres' FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.oid = to_regclass('{table}') AND c.relkind IN ('r', 'p') AND a.attname = 'message_id'`

func postgresRotating() *dialect {
	d := postgres()
	d.name = PostgresRotating
	d.drivers = nil // only Config.Dialect selects it
	d.level = sql.LevelReadCommitted
	d.statements = statements{
		claim:            rotatingClaim,
		entry:            rotatingEntry,
		keep:             rotatingKeep,
		orphan:           rotatingOrphan,
		unclaim:          rotatingUnclaim,
		forget:           rotatingForget,
		list:             rotatingList,
		due:              rotatingDue,
		lockTables:       rotatingLock,
		rotate:           rotatingRotate,
		describe:         strings.ReplaceAll(postgresDescribe, "{table}", "{current}"),
		describePrevious: strings.ReplaceAll(postgresDescribe, "{table}", "{previous}"),
		other:            rotatingOther,
		advise:           rotatingAdvise,
		lock:             d.lock,
	}
	return d
}

// The names of the indexes say nothing of the generation, as they stay with their
// table through all rotations.
const postgresToRotating = `-- Makes the inbox table {table} of dialect postgres that of postgres_rotating. No key is lost.
-- It waits for the deliveries in flight, and all others wait for it. When it is
-- done, programs of dialect postgres process nothing until they are replaced.
-- Grants, triggers and policies of {previous} have to be given to {current} too.
BEGIN;
LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;
ALTER TABLE {table} RENAME TO "{name}_previous";
ALTER INDEX IF EXISTS {in}"{name}_pkey" RENAME TO "{name}_pkey_2";
ALTER INDEX IF EXISTS {in}"{name}_received_at" RENAME TO "{name}_received_2";
CREATE TABLE {current} (
    LIKE {previous} INCLUDING ALL EXCLUDING INDEXES,
    CONSTRAINT "{name}_pkey_1" PRIMARY KEY (consumer, source, message_id)
);
CREATE INDEX "{name}_received_1" ON {current} (received_at);
COMMIT;
`

const rotatingToPostgres = `-- Makes the inbox tables {current} and {previous} of dialect
-- postgres_rotating that of dialect postgres. No key is lost.
-- It waits for the deliveries in flight, and all others wait until it has copied the
-- keys of {previous}. When it is done, programs of dialect
-- postgres_rotating process nothing until they are replaced.
BEGIN;
LOCK TABLE {current}, {previous} IN ACCESS EXCLUSIVE MODE;
INSERT INTO {current} (consumer, source, message_id, event_type, received_at, processed_at, outcome, result, produced, fingerprint)
SELECT consumer, source, message_id, event_type, received_at, processed_at, outcome, result, produced, fingerprint FROM {previous}
ON CONFLICT (consumer, source, message_id) DO NOTHING;
DROP TABLE {previous};
ALTER TABLE {current} RENAME TO "{name}";
ALTER INDEX IF EXISTS {in}"{name}_pkey_1" RENAME TO "{name}_pkey";
ALTER INDEX IF EXISTS {in}"{name}_pkey_2" RENAME TO "{name}_pkey";
ALTER INDEX IF EXISTS {in}"{name}_received_1" RENAME TO "{name}_received_at";
ALTER INDEX IF EXISTS {in}"{name}_received_2" RENAME TO "{name}_received_at";
COMMIT;
`

// Conversion returns the statements that make the table of one dialect that of
// another one, with all keys: text for a migration. There is one from [Postgres] to
// [PostgresRotating], and one back; it fails for others, and for a name that Config
// would refuse. An empty table is [DefaultTable].
//
// The text is one transaction, from its BEGIN to its COMMIT; a tool that begins one
// itself must be told not to. The role that runs it must own the tables. It can run
// while messages flow: deliveries wait for it. After it, stores of the dialect from
// fail with [inbox.ErrNoTable] and process nothing until they are replaced by those
// of the dialect to. Set lock_timeout before it, and try again, if it must not wait,
// with all deliveries behind it, for a handler that runs for long.
func Conversion(from, to Dialect, table string) (string, error) {
	c := Config{Table: table}.withDefaults()
	if err := c.validate(); err != nil {
		return "", fmt.Errorf("inboxsql: %w", err)
	}
	var text string
	switch {
	case from == Postgres && to == PostgresRotating:
		text = postgresToRotating
	case from == PostgresRotating && to == Postgres:
		text = rotatingToPostgres
	default:
		return "", fmt.Errorf("inboxsql: no conversion from dialect %q to %q: there is one from %s to %s, and one back", from, to, Postgres, PostgresRotating)
	}
	return postgres().names(c.Table).Replace(text), nil
}
