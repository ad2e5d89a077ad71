package brokers_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
)

// naiveInbox is an inbox as it is often written: the id, the effect, the commit,
// and then the produced messages, of which it keeps nothing.
func naiveInbox(t *testing.T, d *database) func(*message.Router) error {
	t.Helper()
	table := "naive_" + d.inbox
	d.exec(t, "CREATE TABLE "+table+" (id VARCHAR(100) NOT NULL PRIMARY KEY)")
	t.Cleanup(func() { d.exec(t, "DROP TABLE "+table) })
	insert := map[inboxsql.Dialect]string{
		inboxsql.Postgres: "INSERT INTO " + table + " (id) VALUES ($1) ON CONFLICT DO NOTHING",
		inboxsql.MySQL:    "INSERT IGNORE INTO " + table + " (id) VALUES (?)",
		inboxsql.SQLite:   "INSERT INTO " + table + " (id) VALUES (?) ON CONFLICT DO NOTHING",
	}[d.dialect]
	db := sqlx.NewDb(d.open(), string(d.dialect))
	return func(r *message.Router) error {
		r.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				original := msg.Context()
				ctx := context.WithoutCancel(original)
				tx, err := db.BeginTxx(ctx, nil)
				if err != nil {
					return nil, err
				}
				defer tx.Rollback()
				inserted, err := tx.ExecContext(ctx, insert, msg.UUID)
				if err != nil {
					return nil, err
				}
				if n, countErr := inserted.RowsAffected(); countErr != nil || n == 0 {
					return nil, countErr
				}
				msg.SetContext(inbox.ContextWithTx(ctx, tx))
				defer msg.SetContext(original)
				produced, err := next(msg)
				if err != nil {
					return nil, err
				}
				return produced, tx.Commit()
			}
		})
		return nil
	}
}
