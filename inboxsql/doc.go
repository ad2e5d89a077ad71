// Package inboxsql is the inbox store for databases that database/sql and sqlx
// reach: PostgreSQL, MySQL, MariaDB and SQLite.
//
//	store := inboxsql.MustNew(db, nil) // db is a *sql.DB or a *sqlx.DB
//
// The store begins a transaction per delivery, claims the key as its first
// statement, runs the handler, and commits. Handlers find the transaction with
// [Tx] or [StdTx]. It never owns the database: there is nothing to close.
//
// The table is that of [Schema], to be put into a migration; [Store.CreateTable]
// serves demos and tests.
//
// # Two generations
//
// With Config.Dialect [PostgresRotating] the keys are in two PostgreSQL tables: the
// name of Config.Table with _current, which takes the new ones, and with _previous.
// [Store.Sweep], which a retention.Cleaner calls, is then a rotation: it empties
// the previous table at once and exchanges the names, which leaves nothing to vacuum
// however many keys there are. It does so when every key of the previous table is
// older than the longest of Config.Window and Config.Windows and [inbox.ClockSkew],
// and the current table has a key. So keys stay for one to two windows; longer, if no
// message comes. If a single window is for ever, nothing is removed. Stores that share
// the tables share the rotation: let the one sweep that has the longest window of all.
//
// A rotation waits at most 50 ms for each table, with all deliveries behind it. A
// handler that runs, a vacuum or a dump makes it give up with [inbox.ErrBusy], to come
// again. It needs the role that owns the tables; deliveries do not.
//
// Every transaction is READ COMMITTED: at other levels a delivery that waited for a
// rotation would not see the keys that it moved. [Conversion] has the statements that
// make one table two, and two one. Stores of the other kind then fail with
// [inbox.ErrNoTable]. A rotating store does so too while a table of the plain name is
// there beside the two, as that may have the keys.
//
// # Connections
//
// A delivery holds one connection from its claim to its end. A pool of one
// works with any number of concurrent deliveries, as long as nothing else uses
// it: a handler that queries the pool while its transaction is open waits for a
// connection that no delivery gives back. [Store.Check] compares the pool with
// Config.Deliveries.
//
// # What a handler must not do
//
// It must not end the transaction: neither by tx.Commit or tx.Rollback, nor by
// COMMIT or ROLLBACK as a statement, nor, on MySQL and MariaDB, by a statement
// that commits implicitly, such as DDL. It must return SQL errors: on MySQL a
// deadlock, and on SQLite an interrupted write, roll the whole transaction back,
// and statements after that are committed one by one. The store finds this before
// its commit, or when it commits, and fails with [inbox.ErrTxEnded]; the claim of
// a handler that committed by itself and then failed is removed again, as far as
// the connection lives. It does not see a handler that ends the transaction and
// begins another (COMMIT AND CHAIN, ROLLBACK then BEGIN) and then succeeds, nor,
// on PostgreSQL and SQLite, one that then fails. Through a driver that wraps pgx or
// lib/pq it does not see COMMIT as a statement of a handler that succeeds.
//
// It must close its rows before it returns: the connection is busy as long as
// they are open.
package inboxsql
