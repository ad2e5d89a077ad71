package inboxsql

import (
	"errors"
	"fmt"
	"testing"
)

// Errors shaped like those of the drivers, which the library must not import.
type (
	// mysqlError is *mysql.MySQLError.
	mysqlError struct {
		Number   uint16
		SQLState [5]byte
		Message  string
	}
	// pgxError is *pgconn.PgError, and *pq.Error has the same method.
	pgxError struct{ Code string }
	// moderncError is *sqlite.Error of modernc.org/sqlite.
	moderncError struct{ code int }
	// mattnError is sqlite3.Error of github.com/mattn/go-sqlite3.
	mattnError struct {
		Code         mattnCode
		ExtendedCode mattnCode
	}
	mattnCode int
	// ncrucesError is *sqlite3.Error of github.com/ncruces/go-sqlite3.
	ncrucesError struct {
		msg  string
		code uint64
	}
	ncrucesCode uint8
)

func (e *mysqlError) Error() string       { return e.Message }
func (e *pgxError) Error() string         { return e.Code }
func (e *pgxError) SQLState() string      { return e.Code }
func (e *moderncError) Error() string     { return "modernc" }
func (e *moderncError) Code() int         { return e.code }
func (e mattnError) Error() string        { return "mattn" }
func (e *ncrucesError) Error() string     { return e.msg }
func (e *ncrucesError) Code() ncrucesCode { return ncrucesCode(e.code & 0xff) }

func TestPostgresErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]errorKind{
		"40001": kindConflict,
		"40P01": kindConflict,
		"55P03": kindLocked,
		"42P01": kindNoTable,
		"22001": kindUnstorable,
		"22021": kindUnstorable,
		"22P05": kindUnstorable,
		"54000": kindUnstorable,
		"23505": kindOther,
		"57P01": kindOther,
		"25P02": kindOther,
		"":      kindOther,
	} {
		mustClassify(t, postgres(), &pgxError{code}, want)
	}
	mustClassify(t, postgres(), &mysqlError{Number: 1213}, kindOther)
}

func TestMySQLErrors(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]errorKind{
		1213: kindConflict,
		1205: kindLocked,
		1146: kindNoTable,
		1406: kindUnstorable,
		1062: kindOther,
		3572: kindOther,
		0:    kindOther,
	} {
		mustClassify(t, mysql(), &mysqlError{Number: number}, want)
	}
	mustClassify(t, mysql(), &pgxError{"40001"}, kindOther)
}

func TestSQLiteErrors(t *testing.T) {
	t.Parallel()
	for driver, shaped := range map[string]func(extended int) error{
		"modernc": func(c int) error { return &moderncError{c} },
		"mattn":   func(c int) error { return mattnError{Code: mattnCode(c & 0xff), ExtendedCode: mattnCode(c)} },
		"mattn, without an extended code": func(c int) error {
			return mattnError{Code: mattnCode(c & 0xff)}
		},
		"ncruces": func(c int) error { return &ncrucesError{code: uint64(c)} }, //nolint:gosec // a code
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			for code, want := range map[int]errorKind{
				5:    kindBusy, // SQLITE_BUSY
				261:  kindBusy, // SQLITE_BUSY_RECOVERY
				517:  kindBusy, // SQLITE_BUSY_SNAPSHOT
				6:    kindBusy, // SQLITE_LOCKED
				262:  kindBusy, // SQLITE_LOCKED_SHAREDCACHE
				1:    kindNoTx, // SQLITE_ERROR
				9:    kindOther,
				19:   kindOther,
				1555: kindOther, // SQLITE_CONSTRAINT_PRIMARYKEY
				2067: kindOther, // SQLITE_CONSTRAINT_UNIQUE
			} {
				mustClassify(t, sqlite(), shaped(code), want)
			}
		})
	}
}

func TestErrorsWithoutACodeAreOfNoKind(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		mustClassify(t, d, errors.New("database is locked"), kindOther)
		if got := d.classify(nil); got != kindOther {
			t.Errorf("%s: no error is of kind %d", d.name, got)
		}
	}
}

func TestErrorNumber(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		field string
		want  int64
	}{
		"no error":                     {nil, "Number", 0},
		"an error without fields":      {errors.New("a"), "Number", 0},
		"a field of another type":      {&pgxError{"40001"}, "Code", 0},
		"a field of an unsigned type":  {&mysqlError{Number: 1213}, "Number", 1213},
		"a nil pointer to such a type": {(*numberError)(nil), "Number", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := errorNumber(c.err, c.field); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

type numberError struct{ Number int }

func (*numberError) Error() string { return "number" }

// mustClassify looks at err as it is, and wrapped as the store wraps it.
func mustClassify(t *testing.T, d *dialect, err error, want errorKind) {
	t.Helper()
	for _, err := range []error{err, fmt.Errorf("claim: %w", err), fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", err))} {
		if got := d.classify(err); got != want {
			t.Errorf("%s: %#v is of kind %d, want %d", d.name, err, got, want)
		}
	}
}
