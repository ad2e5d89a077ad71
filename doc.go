// Package inbox is the vocabulary of a transactional inbox (idempotent
// consumer) for Watermill: one middleware line makes every handler of a router
// apply its database effects once per message, on any Pub/Sub.
//
// Every broker delivers at least once. The inbox claims the key of a message in
// the transaction of the handler: claim, effects and the record of the produced
// messages are committed together or not at all, and a later delivery of the
// same message finds the key and does nothing but hand the produced messages to
// the router again.
//
// The promise: once for effects in this database within the deduplication
// window, as durable as the database's commit; at least once for everything
// else. Effects outside the database (an e-mail, an HTTP call, a second
// database) are not covered; return a message for them instead.
//
// # Packages
//
//   - [github.com/watermill-inbox/inbox/middleware] (package inboxmw) is what a
//     router needs: the middleware, the plugin, keys, produced messages.
//   - [github.com/watermill-inbox/inbox/inboxsql] is the store for PostgreSQL,
//     MySQL, MariaDB and SQLite.
//   - [github.com/watermill-inbox/inbox/testutil] is the suite that each store
//     passes, for those who write one.
//   - This package holds what handlers and stores touch: [Tx], [SetResult],
//     [Discard], the errors, and the [Store] contract. It imports the standard
//     library only.
//
// # Order with other middleware
//
// From the outside: Recoverer, PoisonQueue, Retry with ResetContextOnRetry,
// Throttle, Timeout, the inbox, CorrelationID, the handler.
package inbox
