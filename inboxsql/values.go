package inboxsql

import (
	"strings"
	"unicode/utf8"
)

// The longest texts of the columns that are there to be read, in bytes.
const (
	maxEventType = 255
	maxReason    = 1000
)

// discarded begins the outcome column of a discarded key; a processed key has NULL.
const discarded = "discarded: "

func outcome(reason string) string {
	if reason == "" {
		return ""
	}
	return discarded + reason
}

func reason(outcome string) string { return strings.TrimPrefix(outcome, discarded) }

// cut makes s fit for a text column of any database: valid UTF-8 without NUL, of
// at most the given number of bytes.
func cut(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// text is a value for a column that is NULL if there is nothing.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// blob keeps nil and empty apart, which a nil slice in an interface would not.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// inNamespace joins namespace and consumer such that no two pairs give the same
// name. A consumer that starts like a namespace gets an empty one.
func inNamespace(namespace, consumer string) string {
	if namespace == "" && !strings.HasPrefix(consumer, "~") {
		return consumer
	}
	return "~" + namespace + "/" + consumer
}

// outOfNamespace is the consumer that inNamespace has joined.
func outOfNamespace(namespace, stored string) string {
	return strings.TrimPrefix(stored, "~"+namespace+"/")
}
