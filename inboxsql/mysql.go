package inboxsql

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// The first comment is code on MariaDB and nothing on MySQL, which cannot bound
// one statement; there the driver does it. IGNORE answers 0 rows for a duplicate
// whatever clientFoundRows is, but would cut an id that is too long: the length
// is checked before. The variable, and the last digits of received_at, tell this
// connection's claim from that of a connection which began to wait in the same
// microsecond, as a deadlock or DDL can end the transaction without a word.
const mysqlClaim = `/*M!100301 SET STATEMENT innodb_lock_wait_timeout={wait} FOR */ INSERT IGNORE INTO {table}
(consumer, source, message_id, event_type, received_at, processed_at, fingerprint, outcome)
VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3) - INTERVAL 1000 - CONNECTION_ID() % 1000 MICROSECOND, @inbox_claim := UTC_TIMESTAMP(6), ?, ?)`

const mysqlEntry = `SELECT event_type, fingerprint, outcome, result, produced,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', received_at),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', processed_at),
       TIMESTAMPDIFF(MICROSECOND, processed_at, UTC_TIMESTAMP(6))
FROM {table} WHERE consumer = ? AND source = ? AND message_id = ?`

const mysqlKeep = `UPDATE {table} SET result = ?, produced = ?
WHERE consumer = ? AND source = ? AND message_id = ? AND processed_at = CAST(@inbox_claim AS DATETIME(6))
  AND MICROSECOND(received_at) % 1000 = CONNECTION_ID() % 1000`

const mysqlForget = `DELETE FROM {table} WHERE consumer = ? AND source = ? AND message_id = ?`

const mysqlList = `SELECT consumer, source, message_id, event_type, outcome,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', received_at),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', processed_at),
       TIMESTAMPDIFF(MICROSECOND, processed_at, UTC_TIMESTAMP(6)),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM {table}
WHERE consumer >= ? AND consumer < ?
  AND received_at >= '1970-01-01' + INTERVAL ? MICROSECOND
  AND received_at < '1970-01-01' + INTERVAL ? MICROSECOND AND received_at <= UTC_TIMESTAMP(6)
ORDER BY received_at LIMIT ?`

const mysqlOrphan = `SELECT COUNT(*) FROM {table}
WHERE consumer = ? AND source = ? AND message_id = ? AND processed_at = CAST(@inbox_claim AS DATETIME(6))
  AND MICROSECOND(received_at) % 1000 = CONNECTION_ID() % 1000`

const mysqlUnclaim = `DELETE FROM {table}
WHERE consumer = ? AND source = ? AND message_id = ? AND processed_at = CAST(@inbox_claim AS DATETIME(6))
  AND MICROSECOND(received_at) % 1000 = CONNECTION_ID() % 1000`

// The bound of the wait is for the moment in which another sweeper takes the lease.
const mysqlLease = `/*M!100301 SET STATEMENT innodb_lock_wait_timeout=1 FOR */ UPDATE {table} SET event_type = ?, processed_at = UTC_TIMESTAMP(6)
WHERE consumer = ? AND source = ? AND message_id = ?
  AND (event_type = ? OR processed_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND)`

const mysqlNewLease = `INSERT IGNORE INTO {table} (consumer, source, message_id, event_type, received_at, processed_at)
VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))`

const mysqlBatch = `SELECT COALESCE(CAST(MAX(received_at) AS CHAR), ''), COUNT(*) FROM (
SELECT received_at FROM {table}
WHERE received_at >= ? AND received_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AND consumer >= ? AND consumer < ?
ORDER BY received_at LIMIT ?) batch`

// Only a SELECT can skip what others have locked, and only a table made of it can
// be read while its rows are deleted.
const mysqlSweep = `DELETE swept FROM {table} swept JOIN (
SELECT consumer, source, message_id FROM {table}
WHERE received_at >= ? AND received_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AND consumer >= ? AND consumer < ?
ORDER BY received_at LIMIT ? FOR UPDATE SKIP LOCKED) batch
ON swept.consumer = batch.consumer AND swept.source = batch.source AND swept.message_id = batch.message_id`

// Without the unique key INSERT IGNORE would find no duplicate at all.
const mysqlDescribe = `SELECT c.column_name, COALESCE(c.character_octet_length, 0),
       CASE WHEN @@autocommit = 0 AND c.column_name = 'consumer' THEN 'is used in a session without autocommit, where a transaction that a deadlock ended goes on unseen; remove autocommit=0 from the DSN'
            WHEN t.engine <> 'InnoDB' THEN CONCAT('is in a table of engine ', t.engine, ', which does not roll back; ALTER TABLE {table} ENGINE=InnoDB')
            WHEN c.column_name IN ('received_at', 'processed_at') AND (c.data_type <> 'datetime' OR c.datetime_precision <> 6) THEN CONCAT('is ', c.column_type, '; make it DATETIME(6)')
            WHEN c.column_name IN ('result', 'produced') AND c.data_type <> 'longblob' THEN CONCAT('is ', c.column_type, '; make it LONGBLOB')
            WHEN c.column_name NOT IN ('consumer', 'source', 'message_id') THEN ''
            WHEN c.data_type <> 'varbinary' THEN CONCAT('is ', c.column_type, ', which merges ids that differ in case or trailing blanks; make it VARBINARY')
            WHEN NOT EXISTS (SELECT 1 FROM information_schema.statistics s
                              WHERE s.table_schema = c.table_schema AND s.table_name = c.table_name AND s.non_unique = 0
                              GROUP BY s.index_name
                             HAVING GROUP_CONCAT(s.column_name ORDER BY s.seq_in_index) = 'consumer,source,message_id' AND MAX(s.sub_part) IS NULL)
            THEN COALESCE((SELECT CONCAT('is in a table that is partitioned by ', MAX(p.partition_expression), ', which its primary key has to contain, so that a duplicate in another partition would be processed; use package retention instead')
                             FROM information_schema.partitions p WHERE p.table_schema = c.table_schema AND p.table_name = c.table_name),
                          'is not in a primary key (consumer, source, message_id); add it')
            ELSE '' END,
       VERSION()
FROM information_schema.columns c
JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE c.table_schema = COALESCE(NULLIF('{schema}', ''), DATABASE()) AND c.table_name = '{name}'`

const mysqlAdvise = `SELECT 1, 'this server is read-only, so that no key can be claimed', 'connect to the primary'
 FROM DUAL WHERE @@global.read_only = 1
UNION ALL SELECT 0, 'innodb_flush_log_at_trx_commit is not 1: a crash of the server forgets messages that were acked', 'set it to 1'
 FROM DUAL WHERE @@global.innodb_flush_log_at_trx_commit <> 1
UNION ALL SELECT 0, 'no index begins with received_at: removing old keys will read the whole table', 'create the index of inboxsql.Schema'
 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM information_schema.statistics
  WHERE table_schema = COALESCE(NULLIF('{schema}', ''), DATABASE()) AND table_name = '{name}' AND seq_in_index = 1 AND column_name = 'received_at')`

const (
	mariadbInTx = `SELECT @@in_transaction AND @@autocommit`
	// MySQL has no such variable. It refuses this statement, which would change
	// nothing, with error 1568 exactly while a transaction is open.
	mysqlInTx = `SET TRANSACTION READ WRITE`
)

func mysql() *dialect {
	return &dialect{
		name:     MySQL,
		quote:    "`",
		sqlxName: "mysql",
		drivers:  []string{"github.com/go-sql-driver/mysql", "mysql"},
		statements: statements{
			claim:    mysqlClaim,
			entry:    mysqlEntry,
			keep:     mysqlKeep,
			orphan:   mysqlOrphan,
			unclaim:  mysqlUnclaim,
			forget:   mysqlForget,
			list:     mysqlList,
			lease:    mysqlLease,
			newLease: mysqlNewLease,
			batch:    mysqlBatch,
			sweep:    mysqlSweep,
			describe: mysqlDescribe,
			advise:   mysqlAdvise,
		},
		bind:         func(s string) any { return []byte(s) },
		duration:     func(d time.Duration) any { return d.Microseconds() },
		instant:      func(t time.Time) any { return max(t.UnixMicro(), 0) },
		oldest:       "1000-01-01",
		sweepOptions: &sql.TxOptions{Isolation: sql.LevelReadCommitted}, // else a sweep locks the gaps that claims insert into
		waiting: func(s *statements, wait time.Duration) (string, []any) {
			seconds := int((wait + time.Second - 1) / time.Second)
			return s.claims[min(max(seconds, 0), longestWait)], nil
		},
		clientWait: func(server string) bool { return !isMariaDB(server) },
		classify: func(err error) errorKind {
			switch errorNumber(err, "Number") {
			case 1213:
				return kindConflict
			case 1205:
				return kindLocked
			case 1290, 1792, 1836:
				return kindReadOnly
			case 1146:
				return kindNoTable
			case 1406:
				return kindUnstorable
			}
			return kindOther
		},
		silentCommit: true,
		inTx: func(ctx context.Context, tx *sqlx.Tx, server string) (bool, error) {
			if !isMariaDB(server) {
				_, err := tx.ExecContext(ctx, mysqlInTx)
				if errorNumber(err, "Number") == 1568 {
					return true, nil
				}
				return false, err
			}
			var in sql.NullBool
			err := tx.QueryRowContext(ctx, mariadbInTx).Scan(&in)
			return in.Bool, err
		},
	}
}

func isMariaDB(server string) bool { return strings.Contains(server, "MariaDB") }
