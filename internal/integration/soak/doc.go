// Package soak runs two services for a long time with all kinds of trouble at once,
// from a seed, and settles accounts at the end.
package soak
