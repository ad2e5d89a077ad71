// Package outbox tests outboxes in SQL tables behind the inbox, with watermill-sql
// v3 and v4 on PostgreSQL and MariaDB: a chain of two services with a relay
// between them that are killed on the way, and the traps, each with its cure. The
// pgx flavour of watermill-sql v4 needs a store on pgx, and is tested with that.
package outbox
