package inboxsql

import (
	"context"
	"database/sql"
	"reflect"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
)

// The claim bounds its own wait for another delivery of the key and restores
// the session's lock_timeout before the handler's first statement, in the one
// statement: the WHERE clause sets it, RETURNING, which runs after the insert,
// sets it back. MATERIALIZED, or the old value would be read twice. The CASE
// makes set_config depend on the row, or the planner runs it once too early. The
// time of the claim is returned, as it tells this claim from a later one.
const postgresClaim = `WITH was AS MATERIALIZED (SELECT current_setting('lock_timeout') AS v)
INSERT INTO {table} (consumer, source, message_id, event_type, received_at, processed_at, fingerprint, outcome)
SELECT $1::text, $2::text, $3::text, $4::text, now(), clock_timestamp(), $5::bytea, $6::text FROM was
WHERE set_config('lock_timeout', CASE WHEN v IS NULL THEN v ELSE $7::text END, true) IS NOT NULL
ON CONFLICT (consumer, source, message_id) DO NOTHING
RETURNING (extract(epoch FROM processed_at) * 1000000)::bigint::text || left(set_config('lock_timeout', (SELECT v FROM was), true), 0)`

const postgresEntry = `SELECT event_type, fingerprint, outcome, result, produced,
       (extract(epoch FROM received_at) * 1000000)::bigint,
       (extract(epoch FROM processed_at) * 1000000)::bigint,
       (extract(epoch FROM clock_timestamp() - processed_at) * 1000000)::bigint
FROM {table} WHERE consumer = $1 AND source = $2 AND message_id = $3`

const postgresKeep = `UPDATE {table} SET result = $1, produced = $2
WHERE consumer = $3 AND source = $4 AND message_id = $5 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $6::text::bigint`

const postgresForget = `DELETE FROM {table} WHERE consumer = $1 AND source = $2 AND message_id = $3`

const postgresList = `SELECT consumer, source, message_id, event_type, outcome,
       (extract(epoch FROM received_at) * 1000000)::bigint,
       (extract(epoch FROM processed_at) * 1000000)::bigint,
       (extract(epoch FROM clock_timestamp() - processed_at) * 1000000)::bigint,
       (extract(epoch FROM now()) * 1000000)::bigint
FROM {table}
WHERE consumer COLLATE "C" >= $1 AND consumer COLLATE "C" < $2
  AND received_at >= timestamptz 'epoch' + $3::bigint * interval '1 microsecond'
  AND received_at < timestamptz 'epoch' + $4::bigint * interval '1 microsecond' AND received_at <= now()
ORDER BY received_at LIMIT $5`

const postgresOrphan = `SELECT COUNT(*) FROM {table}
WHERE consumer = $1 AND source = $2 AND message_id = $3 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $4::text::bigint`

const postgresUnclaim = `DELETE FROM {table}
WHERE consumer = $1 AND source = $2 AND message_id = $3 AND (extract(epoch FROM processed_at) * 1000000)::bigint = $4::text::bigint`

const postgresLease = `UPDATE {table} SET event_type = $1, processed_at = clock_timestamp()
WHERE consumer = $2 AND source = $3 AND message_id = $4
  AND (event_type = $5 OR processed_at < clock_timestamp() - $6::bigint * interval '1 microsecond')`

const postgresNewLease = `INSERT INTO {table} (consumer, source, message_id, event_type, received_at, processed_at)
VALUES ($1, $2, $3, $4, now(), clock_timestamp()) ON CONFLICT DO NOTHING`

// Without statistics, which a table that fills fast does not have, the planner
// expects so few rows that it reads all of them and sorts. Where there is no index it
// sorts nevertheless, and would take its own fine for work that is worth compiling.
const postgresByIndex = `SELECT set_config('enable_sort', 'off', true), set_config('jit', 'off', true)`

// The batch before tells where this one begins, or each would read the dead rows of
// all before it. The order of consumers is that of bytes whatever the column's
// collation is.
const postgresBatch = `SELECT COALESCE((extract(epoch FROM max(received_at)) * 1000000)::bigint::text, ''), count(*) FROM (
SELECT received_at FROM {table}
WHERE received_at >= timestamptz 'epoch' + $1::text::bigint * interval '1 microsecond'
  AND received_at < now() - $2::bigint * interval '1 microsecond'
  AND consumer COLLATE "C" >= $3 AND consumer COLLATE "C" < $4
ORDER BY received_at LIMIT $5) batch`

const postgresSweep = `DELETE FROM {table} WHERE ctid = ANY (ARRAY(
SELECT ctid FROM {table}
WHERE received_at >= timestamptz 'epoch' + $1::text::bigint * interval '1 microsecond'
  AND received_at < now() - $2::bigint * interval '1 microsecond'
  AND consumer COLLATE "C" >= $3 AND consumer COLLATE "C" < $4
ORDER BY received_at LIMIT $5 FOR UPDATE SKIP LOCKED))`

// The claim has written, so its transaction has an id; one statement on its own,
// after a COMMIT of the handler, has none.
const postgresInTx = `SELECT txid_current_if_assigned() IS NOT NULL`

// A limit of characters is taken as one of bytes: no id is longer in characters.
const postgresDescribe = `SELECT a.attname::text,
       CASE WHEN t.typname = 'varchar' AND a.atttypmod > 0 THEN a.atttypmod - 4 ELSE 0 END,
       CASE WHEN a.attname IN ('event_type', 'outcome') AND t.typname <> 'text' THEN 'is ' || format_type(a.atttypid, a.atttypmod) || '; make it text'
            WHEN a.attname IN ('received_at', 'processed_at') AND t.typname <> 'timestamptz' THEN 'is ' || format_type(a.atttypid, a.atttypmod) || '; make it timestamptz'
            WHEN a.attname IN ('result', 'produced', 'fingerprint') AND t.typname <> 'bytea' THEN 'is ' || format_type(a.atttypid, a.atttypmod) || '; make it bytea'
            WHEN a.attname NOT IN ('consumer', 'source', 'message_id') THEN ''
            WHEN t.typname NOT IN ('text', 'varchar') THEN 'is ' || format_type(a.atttypid, a.atttypmod) || ', which does not keep every id apart; make it text COLLATE "C"'
            WHEN NOT co.collisdeterministic THEN 'has the nondeterministic collation ' || co.collname || ', which merges ids; make it text COLLATE "C"'
            WHEN NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
                              AND (SELECT array_agg(k.attname::text ORDER BY p.place) FROM unnest(i.indkey::int2[]) WITH ORDINALITY p(number, place)
                                   JOIN pg_attribute k ON k.attrelid = i.indrelid AND k.attnum = p.number) = ARRAY['consumer', 'source', 'message_id'])
            THEN COALESCE('is in a table that is partitioned by ' || pg_get_partkeydef(a.attrelid) || ', which its primary key has to contain, so that a duplicate in another partition would be processed; use package retention instead, or partition by message_id where ids have their time in them',
                          'is not in a primary key (consumer, source, message_id); add it')
            ELSE '' END,
       'postgres'
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation co ON co.oid = a.attcollation
WHERE a.attrelid = to_regclass('{table}') AND a.attnum > 0 AND NOT a.attisdropped`

const postgresAdviseServer = `SELECT true, 'this server is a read-only standby, where no key can be claimed', 'connect to the primary'
 WHERE pg_is_in_recovery()
UNION ALL SELECT true, 'transactions are read-only by default here, so that no key can be claimed', 'set default_transaction_read_only to off for this role or database'
 WHERE current_setting('default_transaction_read_only') = 'on'
UNION ALL SELECT false, 'synchronous_commit is off: a crash of the server forgets messages that were acked', 'set it to on for this role or database'
 WHERE current_setting('synchronous_commit') = 'off'
UNION ALL SELECT false, 'fsync is off: a crash of the machine can forget or damage what was acked', 'set fsync = on'
 WHERE current_setting('fsync') = 'off'`

const postgresAdvise = postgresAdviseServer + `
UNION ALL SELECT false, 'the table is UNLOGGED: a crash of the server empties it, and messages are processed again', 'ALTER TABLE {table} SET LOGGED'
 FROM pg_class WHERE oid = to_regclass('{table}') AND relpersistence = 'u'
UNION ALL SELECT false, 'no index begins with received_at: removing old keys will read the whole table', 'create the index of inboxsql.Schema'
 WHERE NOT EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                    WHERE i.indrelid = to_regclass('{table}') AND a.attname = 'received_at')
UNION ALL SELECT false, 'the default isolation level is ' || current_setting('default_transaction_isolation') || ': concurrent deliveries of one message end in serialization failures and are tried again', 'set Config.TxOptions to READ COMMITTED unless your handlers need more'
 WHERE current_setting('default_transaction_isolation') <> 'read committed'`

// Of the two tables the claims are in one.
const postgresOther = `SELECT 'postgres_rotating' FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.oid = to_regclass('{current}') AND to_regclass('{previous}') IS NOT NULL AND c.relkind IN ('r', 'p') AND a.attname = 'message_id'`

func postgres() *dialect {
	return &dialect{
		name:     Postgres,
		quote:    `"`,
		sqlxName: "postgres",
		drivers: []string{
			"github.com/jackc/pgx/v5/stdlib", "github.com/jackc/pgx/v4/stdlib", "github.com/lib/pq",
			"postgres", "pgx", "pgx/v5",
		},
		statements: statements{
			claim:    postgresClaim,
			entry:    postgresEntry,
			keep:     postgresKeep,
			orphan:   postgresOrphan,
			unclaim:  postgresUnclaim,
			forget:   postgresForget,
			list:     postgresList,
			lease:    postgresLease,
			newLease: postgresNewLease,
			byIndex:  postgresByIndex,
			batch:    postgresBatch,
			sweep:    postgresSweep,
			describe: postgresDescribe,
			advise:   postgresAdvise,
			other:    postgresOther,
			// The number is arbitrary; IF NOT EXISTS alone fails when two sessions create at once.
			lock: `SELECT pg_advisory_xact_lock(7305803482631492)`,
		},
		bind:         func(s string) any { return s },
		duration:     func(d time.Duration) any { return d.Microseconds() },
		instant:      func(t time.Time) any { return max(t.UnixMicro(), 0) },
		oldest:       "0",
		sweepOptions: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
		returns:      true,
		waiting: func(s *statements, wait time.Duration) (string, []any) {
			// Zero would mean for ever.
			return s.claim, []any{strconv.FormatInt(max(wait.Milliseconds(), 1), 10) + "ms"}
		},
		classify: func(err error) errorKind {
			switch sqlState(err) {
			case "40001", "40P01":
				return kindConflict
			case "55P03", "57014": // the latter by a statement_timeout that is shorter
				return kindLocked
			case "25006":
				return kindReadOnly
			case "42P01":
				return kindNoTable
			case "22001", "22021", "22P05", "54000":
				return kindUnstorable
			}
			return kindOther
		},
		status:       postgresStatus,
		unclaimFirst: true, // lib/pq
		inTx: func(ctx context.Context, tx *sqlx.Tx, _ string) (in bool, err error) {
			err = tx.QueryRowContext(ctx, postgresInTx).Scan(&in)
			return in, err
		},
	}
}

// postgresStatus reads the transaction status that the server sent with its last
// answer: pgx would take a COMMIT after the handler's own ROLLBACK for a success,
// and lib/pq answers it with an error that has no code. Neither driver can be
// imported here. pgx has methods for it, lib/pq a field.
func postgresStatus(conn *sqlx.Conn) (in, known bool) {
	err := conn.Raw(func(driverConn any) error {
		v := reflect.ValueOf(driverConn)
		if s := reflect.Indirect(v); s.Kind() == reflect.Struct {
			if field := s.FieldByName("txnStatus"); field.IsValid() && field.CanUint() {
				in, known = field.Uint() != 'I', true
				return nil
			}
		}
		// Names as constants: a variable one would keep the linker from dropping
		// any unused method of the program.
		for _, method := range [...]func(reflect.Value) reflect.Value{
			func(v reflect.Value) reflect.Value { return v.MethodByName("Conn") },
			func(v reflect.Value) reflect.Value { return v.MethodByName("PgConn") },
			func(v reflect.Value) reflect.Value { return v.MethodByName("TxStatus") },
		} {
			m := method(v)
			if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
				return nil
			}
			v = m.Call(nil)[0]
		}
		if v.CanUint() {
			in, known = v.Uint() != 'I', true
		}
		return nil
	})
	return in, known && err == nil
}
