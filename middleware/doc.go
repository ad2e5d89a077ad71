// Package inboxmw is the middleware of the inbox: it makes every handler of a
// Watermill router apply its database effects once per message.
//
//	store := inboxsql.MustNew(db, nil)
//	router.AddMiddleware(inboxmw.MustNew(store, nil).Middleware)
//
// or, with checks at start and the inbox innermost whatever is added later:
//
//	router.AddPlugin(inboxmw.MustNew(store, nil).Plugin)
//
// Handlers take the transaction from the context of the message, with
// [github.com/watermill-inbox/inbox/inboxsql.Tx], [TxHandler] or
// [TxConsumerHandler]; what they write through anything else is not protected.
//
// # Order
//
// From the outside: Recoverer, PoisonQueueWithFilter with [ToPoison], Retry with
// ResetContextOnRetry, Throttle, Timeout, the inbox, CorrelationID, the handler.
// Watermill runs first what was added first, router's and handler's together.
//
// Retry, PoisonQueue and IgnoreErrors inside the inbox turn a failure into a
// success, so that the writes of the failed attempt are committed. InstantAck
// acks before the commit, and so loses a message that then fails. Watermill's
// Deduplicator marks a message before its handler has run, and loses it when
// that fails: never combine the two.
//
// # Produced messages
//
// The router publishes what a handler returns after the middleware, hence after
// the commit. If that fails, the redelivered message is a duplicate, and without
// a record its output would be lost. See [ProducedPolicy].
package inboxmw
