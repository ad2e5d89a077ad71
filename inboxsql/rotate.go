package inboxsql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// rotate removes the keys of the previous table at once, and lets the tables change
// places, when the windows of all of them are over. It does nothing while no key is in
// the current table: a table at rest does not rotate.
func (r *delivery) rotate(ctx context.Context, b inbox.Batch) (inbox.Swept, error) {
	window := r.longestWindow()
	if window == 0 {
		return inbox.Swept{Done: true}, nil
	}
	if r.cfg.Namespace != "" && !b.All {
		return inbox.Swept{}, errOneNamespace
	}
	// Asked beforehand and outside of the transaction, so that only a rotation that is
	// due stops deliveries, and none begins with a weaker lock.
	if due, _, err := r.due(ctx, r.conn, window); err != nil || !due {
		return inbox.Swept{Done: true}, err
	}
	swept := inbox.Swept{Done: true}
	err := r.transact(ctx, func(tx *sqlx.Tx) error {
		if err := each(ctx, tx, r.dialect.lockTables); err != nil {
			return err
		}
		// Another process may have rotated meanwhile: what is now the previous table has
		// young keys.
		due, keys, err := r.due(ctx, tx, window)
		if err != nil || !due {
			return err
		}
		swept.Removed = keys
		return each(ctx, tx, r.dialect.rotate)
	})
	if sqlState(err) == "42501" {
		err = fmt.Errorf("a rotation needs the role that owns the tables, with CREATE on their schema: give the cleaner a store of its own, on a pool of that role: %w", err)
	}
	return swept, err
}

var errOneNamespace = errors.New("a rotation removes the keys of all namespaces by the longest window of this store: let a store do it that has the longest window of all, with retention.Config.All")

// due reports whether a rotation removes only keys whose window is over, and about
// how many.
func (r *delivery) due(ctx context.Context, on sqlx.QueryerContext, window time.Duration) (due bool, keys int, err error) {
	err = on.QueryRowxContext(ctx, r.dialect.due, r.dialect.duration(window+inbox.ClockSkew)).Scan(&due, &keys)
	return due, keys, err
}

// longestWindow returns zero if the keys of a consumer are kept for ever.
func (s *Store) longestWindow() time.Duration {
	longest := max(s.cfg.Window, 0)
	for consumer := range s.cfg.Windows {
		w := s.cfg.window(consumer)
		if w == 0 || longest == 0 {
			return 0
		}
		longest = max(longest, w)
	}
	return longest
}

// each runs statements one by one, as not every driver takes several at once.
func each(ctx context.Context, tx *sqlx.Tx, statements string) error {
	for statement := range strings.SplitSeq(statements, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
