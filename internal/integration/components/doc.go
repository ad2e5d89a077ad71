// Package components tests the inbox with Watermill's own components (cqrs,
// requestreply) and with each of its middlewares, on SQLite and a broker in memory.
package components
