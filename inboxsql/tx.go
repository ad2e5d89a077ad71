package inboxsql

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// Tx returns the transaction of the delivery that ctx belongs to, as [inbox.Tx]
// does: [inbox.ErrNoTx] outside a protected handler, [inbox.ErrTxEnded] after it.
func Tx(ctx context.Context) (*sqlx.Tx, error) { return inbox.Tx[*sqlx.Tx](ctx) }

// StdTx is [Tx] for those who work with database/sql, or with an ORM that takes
// its transaction.
func StdTx(ctx context.Context) (*sql.Tx, error) { return inbox.Tx[*sql.Tx](ctx) }
