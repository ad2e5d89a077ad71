// Package brokers tests the inbox on real brokers, through the Pub/Subs of
// Watermill: one suite, and for each broker what the suite has to know of it. A
// matrix of what ran on which broker is printed at the end.
//
// It also has, in the files identity_*.go, what keeps the identity that a broker
// gives a message, where the Pub/Sub hides it: to be copied into a service whose
// producers set no ids.
package brokers
