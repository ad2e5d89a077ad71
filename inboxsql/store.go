package inboxsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// Store is an [inbox.Store] on database/sql. Make one with [New]. It is safe for
// concurrent use, and so are several on the same table.
type Store struct {
	db      *sqlx.DB
	cfg     Config
	dialect *dialect
	table   atomic.Pointer[table] // what the database says of it; nil until first asked
}

// New returns a store on db, which it never closes. A nil cfg is all defaults.
// It does no I/O. The error names the field of cfg that is wrong; a driver that
// is not known needs Config.Dialect.
func New[DB *sql.DB | *sqlx.DB](db DB, cfg *Config) (*Store, error) {
	if db == nil {
		return nil, errors.New("inboxsql: the database is nil")
	}
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("inboxsql: %w", err)
	}
	var x *sqlx.DB
	switch db := any(db).(type) {
	case *sql.DB:
		x = sqlx.NewDb(db, "")
	case *sqlx.DB:
		x = db
	}
	find := func() (*dialect, error) { return dialectOf(x) }
	if c.Dialect != "" {
		find = func() (*dialect, error) { return dialectNamed(c.Dialect) }
	}
	d, err := find()
	if err != nil {
		return nil, err
	}
	if d.level != sql.LevelDefault {
		if c.TxOptions != nil && c.TxOptions.Isolation != sql.LevelDefault && c.TxOptions.Isolation != d.level {
			return nil, fmt.Errorf("inboxsql: Config.TxOptions asks for %s, but dialect %s finds every duplicate at %s only: otherwise a transaction does not see the keys that were committed while it waited for a rotation, and processes their messages again", c.TxOptions.Isolation, d.name, d.level)
		}
		c.TxOptions = &sql.TxOptions{Isolation: d.level} // whatever the session's default is
	}
	if x.DriverName() == "" {
		mapper := x.Mapper
		x = sqlx.NewDb(x.DB, d.sqlxName)
		x.Mapper = mapper
	}
	return &Store{db: x, cfg: c, dialect: d.prepare(c.Table)}, nil
}

// MustNew is [New] for the wiring of a program. It panics where New fails.
func MustNew[DB *sql.DB | *sqlx.DB](db DB, cfg *Config) *Store {
	s, err := New(db, cfg)
	if err != nil {
		panic(err)
	}
	return s
}

// Once implements [inbox.Store]: see there for what it promises. The handles in
// the context of fn are [*sqlx.Tx] and [*sql.Tx].
func (s *Store) Once(ctx context.Context, d inbox.Delivery, fn func(ctx context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	r := s.newDelivery(ctx, d)
	return r.connected(ctx, func(ctx context.Context) (inbox.Entry, bool, error) { return r.once(ctx, fn) })
}

// connect waits for a connection as long as the delivery's own context and the
// bound allow: the detached context would hold up a router that closes.
func (s *Store) connect(ctx context.Context) (*sqlx.Conn, error) {
	bounded := ctx
	if s.cfg.ConnTimeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, s.cfg.ConnTimeout)
		defer cancel()
	}
	conn, err := s.db.Connx(bounded)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		if stats := s.db.Stats(); stats.MaxOpenConnections > 0 && stats.InUse >= stats.MaxOpenConnections {
			return nil, fmt.Errorf("no connection became free in %s; of %d, all are in use: does a handler query the pool while its transaction is open? %w",
				s.cfg.ConnTimeout, stats.MaxOpenConnections, err)
		}
		return nil, fmt.Errorf("no connection to the database in %s: %w", s.cfg.ConnTimeout, err)
	}
	return conn, err
}
