// Package testutil tests handlers and stores of the inbox. It needs the standard
// testing package only, and imports no driver.
//
// [CheckAtomic] finds effects of your handler outside of the transaction, which no
// inbox can undo; [CheckOnce] finds what a redelivery does. Both compare all tables
// of the database and need no list of them. [Recorder] is a publisher that keeps what
// it gets.
//
// [RunStoreTests] runs one list of cases, each a binding rule of the inbox, against any
// [inbox.Store]; a store of your own is right when it passes.
package testutil
