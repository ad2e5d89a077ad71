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
