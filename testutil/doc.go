// Package testutil tests stores of the inbox. [RunStoreTests] runs one list of
// cases, each a binding rule of the inbox, against any [inbox.Store]; a store of
// your own is right when it passes. It needs the standard testing package only,
// and imports no driver.
package testutil
