// Package integration tests the inbox on real databases.
package integration
