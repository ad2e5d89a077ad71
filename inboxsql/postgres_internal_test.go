package inboxsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/jmoiron/sqlx"
)

// Connections shaped like those of the drivers, in a transaction or not.
type (
	bareConn struct{ driver.Conn }

	// pgxConn is *stdlib.Conn: its Conn is a *pgx.Conn, whose PgConn has the status.
	pgxConn struct {
		bareConn
		status byte
	}
	pgxInner struct{ status byte }
	pgConn   struct{ status byte }

	// pqConn is the connection of lib/pq.
	pqConn struct {
		bareConn
		txnStatus byte
	}

	// otherConn has a method of the same name that wants something.
	otherConn struct{ bareConn }
)

func (bareConn) Close() error { return nil }

func (c *pgxConn) Conn() *pgxInner { return &pgxInner{c.status} }

func (c *pgxInner) PgConn() *pgConn { return &pgConn{c.status} }

func (c *pgConn) TxStatus() byte { return c.status }

func (*otherConn) Conn(name string) (string, error) { return name, nil }

type connector struct {
	wrappedDriver
	conn driver.Conn
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.conn, nil }

func (c connector) Driver() driver.Driver { return c.wrappedDriver }

func TestPostgresStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conn      driver.Conn
		in, known bool
	}{
		"of pgx in a transaction":               {&pgxConn{status: 'T'}, true, true},
		"of pgx in a failed transaction":        {&pgxConn{status: 'E'}, true, true},
		"of pgx without a transaction":          {&pgxConn{status: 'I'}, false, true},
		"of lib/pq in a transaction":            {&pqConn{txnStatus: 'T'}, true, true},
		"of lib/pq in a failed transaction":     {&pqConn{txnStatus: 'E'}, true, true},
		"of lib/pq without a transaction":       {&pqConn{txnStatus: 'I'}, false, true},
		"of a driver that has none":             {&bareConn{}, false, false},
		"of a driver with a method of its own":  {&otherConn{}, false, false},
		"of a driver without a pointer or name": {bareConn{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqlx.NewDb(sql.OpenDB(connector{conn: c.conn}), "pgx")
			conn, err := db.Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			in, known := postgresStatus(conn)
			if known != c.known || known && in != c.in {
				t.Errorf("got %v, known %v, want %v, %v", in, known, c.in, c.known)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPostgresStatusOfAConnectionThatIsGoneIsNotKnown(t *testing.T) {
	t.Parallel()
	db := sqlx.NewDb(sql.OpenDB(connector{conn: &pgxConn{status: 'T'}}), "pgx")
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if in, known := postgresStatus(conn); known {
		t.Errorf("got %v", in)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
