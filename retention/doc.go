// Package retention removes the keys of an inbox whose window is over, at a pace
// that messages do not notice: a table that only grows makes every insert slower.
//
// One line starts it with the router:
//
//	router.AddPlugin(retention.MustNew(store, nil).Plugin)
//
// Any number of processes may run a [Cleaner] on one table; one works at a time.
package retention
