package crash_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"net"
	"strings"
)

// fullConn is what each of the drivers has.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
}

// connector opens connections that know the claim and the commit.
type connector struct {
	driver.Connector
	life  *life
	inbox string // the table whose inserts are claims
}

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{fullConn: opened.(fullConn), of: c}, nil //nolint:errcheck,forcetypeassert // it has all that, or the test ends
}

type conn struct {
	fullConn
	of *connector
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.fullConn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// IsValid implements [driver.Validator].
func (c *conn) IsValid() bool {
	validator, ok := c.fullConn.(driver.Validator)
	return !ok || validator.IsValid()
}

func (c *conn) claims(query string) bool {
	return strings.Contains(query, "INSERT") && strings.Contains(query, c.of.inbox)
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	claims := c.claims(query)
	if claims {
		c.of.life.pass(beforeClaim)
	}
	result, err := c.fullConn.ExecContext(ctx, query, args)
	if claims && err == nil {
		c.of.life.pass(afterClaim)
	}
	return result, err
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	claims := c.claims(query)
	if claims {
		c.of.life.pass(beforeClaim)
	}
	rows, err := c.fullConn.QueryContext(ctx, query, args)
	if claims && err == nil {
		c.of.life.pass(afterClaim)
	}
	return rows, err
}

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	begun, err := c.fullConn.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &tx{begun, c.of.life}, nil
}

type tx struct {
	driver.Tx
	life *life
}

// Commit implements [driver.Tx].
func (t *tx) Commit() error {
	t.life.pass(beforeCommit)
	return t.Tx.Commit()
}

// wire sees what is sent to a server.
type wire struct {
	net.Conn
	life *life
}

func (w wire) Write(data []byte) (int, error) {
	n, err := w.Conn.Write(data)
	if err == nil && bytes.Contains(bytes.ToLower(data), []byte("commit")) {
		w.life.pass(commitSent)
	}
	return n, err
}
