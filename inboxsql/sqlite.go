package inboxsql

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// The clock of SQLite has milliseconds. Three digits by chance tell two claims of
// one key in one millisecond apart.
const sqliteClaim = `INSERT INTO {table} (consumer, source, message_id, event_type, received_at, processed_at, fingerprint, outcome)
VALUES (?, ?, ?, ?, strftime('%Y-%m-%d %H:%M:%f', 'now'),
        strftime('%Y-%m-%d %H:%M:%f', 'now') || printf('%03d', abs(random() % 1000)), ?, ?)
ON CONFLICT (consumer, source, message_id) DO NOTHING
RETURNING processed_at`

// Days since noon in 4714 BC, which is what julianday counts, to microseconds
// since 1970; a double holds them to less than a tenth of a millisecond.
const sqliteEntry = `SELECT event_type, fingerprint, outcome, result, produced,
       CAST(ROUND((julianday(received_at) - 2440587.5) * 86400000) AS INTEGER) * 1000,
       CAST(ROUND((julianday(processed_at) - 2440587.5) * 86400000) AS INTEGER) * 1000,
       CAST(ROUND((julianday('now') - julianday(processed_at)) * 86400000) AS INTEGER) * 1000
FROM {table} WHERE consumer = ? AND source = ? AND message_id = ?`

const sqliteKeep = `UPDATE {table} SET result = ?, produced = ?
WHERE consumer = ? AND source = ? AND message_id = ? AND processed_at = ?`

const sqliteForget = `DELETE FROM {table} WHERE consumer = ? AND source = ? AND message_id = ?`

const sqliteList = `SELECT consumer, source, message_id, event_type, outcome,
       CAST(ROUND((julianday(received_at) - 2440587.5) * 86400000) AS INTEGER) * 1000,
       CAST(ROUND((julianday(processed_at) - 2440587.5) * 86400000) AS INTEGER) * 1000,
       CAST(ROUND((julianday('now') - julianday(processed_at)) * 86400000) AS INTEGER) * 1000,
       CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
FROM {table}
WHERE consumer >= ? AND consumer < ?
  AND received_at >= ? AND received_at < ? AND received_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
ORDER BY received_at LIMIT ?`

const sqliteOrphan = `SELECT COUNT(*) FROM {table}
WHERE consumer = ? AND source = ? AND message_id = ? AND processed_at = ?`

const sqliteUnclaim = `DELETE FROM {table}
WHERE consumer = ? AND source = ? AND message_id = ? AND processed_at = ?`

const sqliteLease = `UPDATE {table} SET event_type = ?, processed_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE consumer = ? AND source = ? AND message_id = ? AND (event_type = ? OR processed_at < strftime('%Y-%m-%d %H:%M:%f', 'now', ?))`

const sqliteNewLease = `INSERT INTO {table} (consumer, source, message_id, event_type, received_at, processed_at)
VALUES (?, ?, ?, ?, strftime('%Y-%m-%d %H:%M:%f', 'now'), strftime('%Y-%m-%d %H:%M:%f', 'now')) ON CONFLICT DO NOTHING`

const sqliteBatch = `SELECT COALESCE(MAX(received_at), ''), COUNT(*) FROM (
SELECT received_at FROM {table}
WHERE received_at >= ? AND received_at < strftime('%Y-%m-%d %H:%M:%f', 'now', ?) AND consumer >= ? AND consumer < ?
ORDER BY received_at LIMIT ?)`

const sqliteSweep = `DELETE FROM {table} WHERE (consumer, source, message_id) IN (
SELECT consumer, source, message_id FROM {table}
WHERE received_at >= ? AND received_at < strftime('%Y-%m-%d %H:%M:%f', 'now', ?) AND consumer >= ? AND consumer < ?
ORDER BY received_at LIMIT ?)`

// A column of another type would turn '007' into 7.
const sqliteDescribe = `SELECT x.name, 0,
       CASE WHEN x.name NOT IN ('consumer', 'source', 'message_id') THEN ''
            WHEN upper(x.type) <> 'TEXT' THEN 'is declared ' || x.type || ', which changes ids; make it TEXT'
            WHEN EXISTS (SELECT 1 FROM pragma_index_list('{name}', NULLIF('{schema}', '')) l
                         JOIN pragma_index_xinfo(l.name, NULLIF('{schema}', '')) i
                         WHERE l.origin = 'pk' AND i.name = x.name AND upper(i.coll) <> 'BINARY')
            THEN 'has a collation that merges ids; make it BINARY, the default'
            WHEN x.pk <> CASE x.name WHEN 'consumer' THEN 1 WHEN 'source' THEN 2 ELSE 3 END
              OR EXISTS (SELECT 1 FROM pragma_table_xinfo('{name}', NULLIF('{schema}', '')) y WHERE y.pk > 3)
            THEN 'is not in a primary key (consumer, source, message_id); add it'
            ELSE '' END,
       sqlite_version()
FROM pragma_table_xinfo('{name}', NULLIF('{schema}', '')) x`

const sqliteAdvise = `SELECT 0, 'synchronous is below FULL: a crash of the machine forgets messages that were acked', 'open the database with synchronous FULL'
 FROM pragma_synchronous WHERE synchronous < 2
UNION ALL SELECT 0, 'the journal mode is ' || journal_mode || ': a crash in a commit can damage the database', 'open it with journal_mode WAL'
 FROM pragma_journal_mode WHERE journal_mode IN ('off', 'memory') AND (SELECT file FROM pragma_database_list WHERE name = 'main') <> ''
UNION ALL SELECT 0, 'busy_timeout is 0: the store itself waits for other writers, but readers and the handlers of other tables fail at once', 'open the database with a busy_timeout of some seconds'
 FROM pragma_busy_timeout WHERE timeout = 0
UNION ALL SELECT 0, 'no index begins with received_at: removing old keys will read the whole table', 'create the index of inboxsql.Schema'
 WHERE NOT EXISTS (SELECT 1 FROM pragma_index_list('{name}', NULLIF('{schema}', '')) l JOIN pragma_index_info(l.name, NULLIF('{schema}', '')) i
  WHERE i.seqno = 0 AND i.name = 'received_at')`

// A transaction cannot be begun within one, and the refusal changes nothing.
const sqliteInTx = `BEGIN`

const sqliteEndProbe = `ROLLBACK`

// sqliteError is the general error code: all that tells that COMMIT found no
// transaction to commit.
const sqliteError = 1

func sqlite() *dialect {
	return &dialect{
		name:     SQLite,
		quote:    `"`,
		sqlxName: "sqlite3",
		drivers: []string{
			"modernc.org/sqlite", "github.com/mattn/go-sqlite3", "github.com/ncruces/go-sqlite3/driver", "github.com/glebarez/go-sqlite",
			"sqlite", "sqlite3",
		},
		statements: statements{
			claim:    sqliteClaim,
			entry:    sqliteEntry,
			keep:     sqliteKeep,
			orphan:   sqliteOrphan,
			unclaim:  sqliteUnclaim,
			forget:   sqliteForget,
			list:     sqliteList,
			lease:    sqliteLease,
			newLease: sqliteNewLease,
			batch:    sqliteBatch,
			sweep:    sqliteSweep,
			describe: sqliteDescribe,
			advise:   sqliteAdvise,
		},
		bind:     func(s string) any { return s },
		duration: func(d time.Duration) any { return fmt.Sprintf("-%.3f seconds", d.Seconds()) },
		instant:  func(t time.Time) any { return t.UTC().Format("2006-01-02 15:04:05.000") },
		oldest:   "0",
		returns:  true,
		waiting: func(s *statements, _ time.Duration) (string, []any) {
			return s.claim, nil
		},
		classify: func(err error) errorKind {
			switch sqliteCode(err) & 0xff {
			case 5, 6: // SQLITE_BUSY, SQLITE_LOCKED
				return kindBusy
			case sqliteError:
				return kindNoTx
			}
			return kindOther
		},
		inTx: func(ctx context.Context, tx *sqlx.Tx, _ string) (bool, error) {
			_, err := tx.ExecContext(ctx, sqliteInTx)
			if err == nil {
				_, err = tx.ExecContext(ctx, sqliteEndProbe)
				return false, err
			}
			if sqliteCode(err) == sqliteError {
				return true, nil
			}
			return false, err
		},
	}
}

// sqliteCode reads the extended code: a method of modernc's error, a field of
// mattn's and, not exported, of ncruces'.
func sqliteCode(err error) int64 {
	if code := methodCode(err); code != 0 {
		return code
	}
	for _, field := range [...]string{"ExtendedCode", "Code", "code"} {
		if code := errorNumber(err, field); code != 0 {
			return code
		}
	}
	return 0
}
