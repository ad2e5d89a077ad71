package inboxsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

// faults are what goes wrong in a database that is opened by openFaulty. Each is
// called with what would be done, and returns what the driver answers.
type faults struct {
	begin  atomic.Pointer[func(begin func() (driver.Tx, error)) (driver.Tx, error)]
	commit atomic.Pointer[func(commit func() error) error]
	exec   atomic.Pointer[func(query string, exec func() (driver.Result, error)) (driver.Result, error)]
	opened atomic.Int64 // connections
}

// openFaulty opens SQLite behind a driver that nobody knows.
func openFaulty(t *testing.T) (*sql.DB, *faults) {
	t.Helper()
	f := &faults{}
	file := filepath.Join(t.TempDir(), "test.db")
	db := sql.OpenDB(&faultyDriver{sqlite: sqlitetest.OpenFile(t, file, "").Driver(), dsn: "file:" + file + sqlitetest.WAL, faults: f})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, f
}

type faultyDriver struct {
	sqlite driver.Driver
	dsn    string
	faults *faults
}

func (d *faultyDriver) Driver() driver.Driver { return d }

func (d *faultyDriver) Connect(context.Context) (driver.Conn, error) { return d.Open(d.dsn) }

func (d *faultyDriver) Open(dsn string) (driver.Conn, error) {
	c, err := d.sqlite.Open(dsn)
	if err != nil {
		return nil, err
	}
	d.faults.opened.Add(1)
	return &faultyConn{conn: c.(conn), faults: d.faults}, nil //nolint:errcheck,forcetypeassert // as the driver is
}

// conn is what the driver's connections can do.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
}

type faultyConn struct {
	conn
	faults *faults
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	begin := func() (driver.Tx, error) { return c.conn.BeginTx(ctx, o) }
	if fault := c.faults.begin.Load(); fault != nil {
		pass := begin
		begin = func() (driver.Tx, error) { return (*fault)(pass) }
	}
	tx, err := begin()
	if err != nil {
		return nil, err
	}
	return &faultyTx{Tx: tx, faults: c.faults}, nil
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	exec := func() (driver.Result, error) { return c.conn.ExecContext(ctx, query, args) }
	if fault := c.faults.exec.Load(); fault != nil {
		return (*fault)(query, exec)
	}
	return exec()
}

type faultyTx struct {
	driver.Tx
	faults *faults
}

func (tx *faultyTx) Commit() error {
	if fault := tx.faults.commit.Load(); fault != nil {
		return (*fault)(tx.Tx.Commit)
	}
	return tx.Tx.Commit()
}

// busyError is an error of a driver that says that another writer has the database.
type busyError struct{}

func (busyError) Error() string { return "busy" }

func (busyError) Code() int { return 5 }

var errFault = errors.New("connection reset by peer")

func openFaultyShop(t *testing.T, cfg inboxsql.Config) (*shop, *faults) {
	t.Helper()
	db, f := openFaulty(t)
	cfg.Dialect = inboxsql.SQLite
	return newShop(t, db, &cfg), f
}

func TestFaultAtBegin(t *testing.T) {
	t.Parallel()

	t.Run("is an error before the handler runs", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		fault := func(func() (driver.Tx, error)) (driver.Tx, error) { return nil, errFault }
		f.begin.Store(&fault)
		s.mustFail(t, mustNotRun(t), inbox.OpBegin, errFault)
		f.begin.Store(nil)
		s.mustProcess(t)
	})

	t.Run("is tried again while the database is busy", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		attempts := 0
		fault := func(begin func() (driver.Tx, error)) (driver.Tx, error) {
			if attempts++; attempts < 3 {
				return nil, busyError{}
			}
			return begin()
		}
		f.begin.Store(&fault)
		s.mustProcess(t)
		if attempts != 4 {
			t.Errorf("BEGIN was tried %d times for two deliveries, want 3 and 1", attempts)
		}
	})

	t.Run("is ErrBusy once the wait is over", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{Wait: -1})
		attempts := 0
		fault := func(func() (driver.Tx, error)) (driver.Tx, error) { //nolint:unparam // as a fault is
			attempts++
			return nil, busyError{}
		}
		f.begin.Store(&fault)
		_, _, err := s.deliver(t.Context(), mustNotRun(t))
		mustBeAt(t, err, inbox.OpClaim)
		if !errors.Is(err, inbox.ErrBusy) || !errors.Is(err, busyError{}) || errors.Is(err, inbox.ErrInFlight) || inbox.Permanent(err) {
			t.Errorf("got %v, want %q and the driver's error, and no word on who is busy", err, inbox.ErrBusy)
		}
		if attempts != 1 {
			t.Errorf("BEGIN was tried %d times without a wait", attempts)
		}
	})

	t.Run("spares the handler a connection that went bad in the pool", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		attempts := 0
		fault := func(begin func() (driver.Tx, error)) (driver.Tx, error) {
			if attempts++; attempts == 1 {
				return nil, driver.ErrBadConn
			}
			return begin()
		}
		f.begin.Store(&fault)
		opened := f.opened.Load()
		s.mustProcess(t)
		if n := f.opened.Load(); n != opened+1 {
			t.Errorf("%d connections were opened instead of the bad one", n-opened)
		}
	})
}

func TestFaultAtCommit(t *testing.T) {
	t.Parallel()

	t.Run("leaves no transaction open on a connection of the pool", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		fault := func(func() error) error { return errFault }
		f.commit.Store(&fault)
		opened := f.opened.Load()
		s.mustFail(t, write, inbox.OpCommit, errFault)
		f.commit.Store(nil)
		if n := s.count(t, "effects"); n > 0 {
			t.Errorf("%d effects are left", n)
		}
		s.mustProcess(t)
		if n := f.opened.Load(); n != opened {
			t.Errorf("%d connections were opened, although a rollback was enough", n-opened)
		}
	})

	t.Run("throws the connection away if even a rollback fails", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		fault := func(func() error) error { return errFault }
		f.commit.Store(&fault)
		noRollback := func(query string, exec func() (driver.Result, error)) (driver.Result, error) {
			if query == "ROLLBACK" {
				return nil, errFault
			}
			return exec()
		}
		f.exec.Store(&noRollback)
		opened := f.opened.Load()
		s.mustFail(t, write, inbox.OpCommit, errFault)
		f.commit.Store(nil)
		s.mustProcess(t)
		if n := f.opened.Load(); n != opened+1 {
			t.Errorf("%d connections were opened, want one for the one that was thrown away", n-opened)
		}
	})

	t.Run("is an error that the next delivery finds the truth about, if it was applied", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		fault := func(commit func() error) error { return errors.Join(commit(), errFault) }
		f.commit.Store(&fault)
		_, _, err := s.deliver(t.Context(), func(ctx context.Context) (inbox.Effect, error) {
			return inbox.Effect{Record: []byte("record")}, effect(ctx)
		})
		mustBeAt(t, err, inbox.OpCommit)
		if !errors.Is(err, errFault) || errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v, want %q, as the fate of the commit is unknown", err, errFault)
		}
		f.commit.Store(nil)
		e, duplicate, err := s.deliver(t.Context(), mustNotRun(t))
		if err != nil || !duplicate || string(e.Record) != "record" {
			t.Errorf("got %+v, duplicate %v, error %v, want a duplicate with its record", e, duplicate, err)
		}
		if n := s.count(t, "effects"); n != 1 {
			t.Errorf("there are %d effects, want 1", n)
		}
	})

	t.Run("is not tried again", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		commits, runs := 0, 0
		fault := func(func() error) error { //nolint:unparam // as a fault is
			commits++
			return busyError{}
		}
		f.commit.Store(&fault)
		s.mustFail(t, func(ctx context.Context) (inbox.Effect, error) { runs++; return write(ctx) }, inbox.OpCommit, busyError{})
		if commits != 1 || runs != 1 {
			t.Errorf("the handler ran %d times, COMMIT %d times", runs, commits)
		}
		f.commit.Store(nil)
		s.mustProcess(t)
	})

	t.Run("of a discarded delivery is at its own step", func(t *testing.T) {
		t.Parallel()
		s, f := openFaultyShop(t, inboxsql.Config{})
		fault := func(func() error) error { return errFault }
		f.commit.Store(&fault)
		_, duplicate, err := s.deliver(t.Context(), discard)
		if duplicate || !errors.Is(err, errFault) {
			t.Errorf("got duplicate %v, error %v", duplicate, err)
		}
		f.commit.Store(nil)
		s.mustProcess(t)
	})
}

func nothing(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil }

func discard(ctx context.Context) (inbox.Effect, error) {
	return inbox.Effect{Discard: "too old"}, effect(ctx)
}

func mustNotRun(t *testing.T) handler {
	t.Helper()
	return func(context.Context) (inbox.Effect, error) {
		t.Error("the handler ran")
		return inbox.Effect{}, nil
	}
}
