package inboxsql

import (
	"errors"
	"reflect"
)

// errorKind is what a database error means to a claim.
type errorKind int

const (
	kindOther      errorKind = iota
	kindConflict             // deadlock or serialization failure: the transaction is undone, try again
	kindLocked               // the bounded wait for another delivery is over
	kindBusy                 // another writer has the database; who, cannot be told
	kindNoTx                 // SQLite, at COMMIT: no transaction is open
	kindNoTable              // the table is gone
	kindReadOnly             // this session cannot write, as after a failover; another may
	kindUnstorable           // a column cannot hold the value
)

// sqlState returns the code of a PostgreSQL error, which pgx and lib/pq answer
// by the same method, or "".
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// methodCode returns the code of an error that answers it by a method, or 0.
func methodCode(err error) int64 {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return int64(coded.Code())
	}
	return 0
}

// errorNumber returns the integer field of that name of the first error in the
// chain that has one, or 0. Drivers keep their codes in fields of their own
// types, which this package must not import; their texts differ by language.
func errorNumber(err error, field string) int64 {
	for err != nil {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() == reflect.Struct {
			switch f := v.FieldByName(field); {
			case !f.IsValid():
			case f.CanInt():
				return f.Int()
			case f.CanUint():
				return int64(f.Uint()) //nolint:gosec // error numbers are small
			}
		}
		err = errors.Unwrap(err)
	}
	return 0
}
