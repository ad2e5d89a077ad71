package soak_test

import (
	"context"
	"database/sql"
	"sync"

	"github.com/watermill-inbox/inbox"
)

// killed is the trouble that a killer makes.
const killed = "session killed"

// killer ends the sessions of deliveries from outside.
type killer struct {
	place  place
	chance *chance
	db     *sql.DB
	kills  sync.WaitGroup
}

// visit may end the session of the delivery in ctx, a moment from now: while the
// handler runs, while it commits, or when the session has another delivery.
func (k *killer) visit(ctx context.Context) error {
	if k.place.kill == "" || !k.chance.in(100, killed) {
		return nil
	}
	var session int64
	if err := inbox.MustTx[*sql.Tx](ctx).QueryRowContext(ctx, k.place.self).Scan(&session); err != nil {
		return err
	}
	k.kills.Go(func() {
		_, _ = k.db.ExecContext(context.WithoutCancel(ctx), k.place.kill, session) // it may be gone already
	})
	return nil
}
