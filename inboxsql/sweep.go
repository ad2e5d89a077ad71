package inboxsql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox"
)

// Sweep implements [inbox.Sweeper]: see there for what it promises. It needs a
// free connection of the pool. With [PostgresRotating] it is a rotation.
func (s *Store) Sweep(ctx context.Context, b inbox.Batch) (inbox.Swept, error) {
	if b.Owner == "" || b.Limit < 1 {
		return inbox.Swept{}, fmt.Errorf("inboxsql: sweep: a batch with owner %q and limit %d", b.Owner, b.Limit)
	}
	r := s.newDelivery(ctx, inbox.Delivery{})
	r.options = s.dialect.sweepOptions
	if _, err := r.open(ctx); err != nil {
		return inbox.Swept{}, err
	}
	defer r.conn.Close() //nolint:errcheck // gives the connection back
	remove := r.removeBatch
	if r.dialect.rotates() {
		remove = r.rotate
	}
	swept, err := remove(ctx, b)
	for attempt := 1; r.dialect.classify(err) == kindBusy && r.busy(inbox.OpSweep, err) == nil; attempt++ {
		pause(ctx, attempt) // there is one writer, and it may be someone else again
		swept, err = remove(ctx, b)
	}
	if err == nil {
		return swept, nil
	}
	switch r.dialect.classify(err) {
	case kindBusy, kindLocked, kindConflict:
		err = fmt.Errorf("%w: %w", inbox.ErrBusy, err)
	case kindOther, kindNoTx, kindNoTable, kindReadOnly, kindUnstorable:
		s.table.Store(nil) // look again what it is: it may be another one now
	}
	var failed *inbox.StoreError
	if errors.As(err, &failed) && failed.Op != inbox.OpSweep && !errors.Is(err, inbox.ErrBusy) {
		return inbox.Swept{}, err
	}
	return inbox.Swept{}, r.failed(inbox.OpSweep, err)
}

func (r *delivery) removeBatch(ctx context.Context, b inbox.Batch) (swept inbox.Swept, err error) {
	err = r.transact(ctx, func(tx *sqlx.Tx) (err error) {
		swept, err = r.sweep(ctx, tx, b)
		return err
	})
	return swept, err
}

// sweep removes what there is in the first pass that has something.
func (r *delivery) sweep(ctx context.Context, tx *sqlx.Tx, b inbox.Batch) (inbox.Swept, error) {
	alone, err := r.takeLease(ctx, tx, cut(b.Owner, maxEventType))
	if err != nil || !alone {
		return inbox.Swept{Elsewhere: !alone, Next: b.From}, err
	}
	if r.dialect.byIndex != "" {
		if _, err := tx.ExecContext(ctx, r.dialect.byIndex); err != nil {
			return inbox.Swept{}, err
		}
	}
	passes := r.passes(b.All)
	at := b.From
	for ; at.Pass < len(passes); at = (inbox.Position{Pass: at.Pass + 1}) {
		p := passes[at.Pass]
		if at.After == "" {
			at.After = r.dialect.oldest
		}
		args := []any{at.After, r.dialect.duration(p.window + inbox.ClockSkew), r.dialect.bind(p.from), r.dialect.bind(p.to), b.Limit}
		var found int
		var newest string
		if err := tx.QueryRowContext(ctx, r.dialect.batch, args...).Scan(&newest, &found); err != nil {
			return inbox.Swept{}, err
		}
		if found == 0 {
			continue
		}
		removed, err := affected(tx.ExecContext(ctx, r.dialect.sweep, args...))
		if err != nil {
			return inbox.Swept{}, err
		}
		next := inbox.Position{Pass: at.Pass, After: newest}
		// The rest is locked by others if a whole batch of one time is.
		if found < b.Limit || (removed == 0 && newest == at.After) {
			next = inbox.Position{Pass: at.Pass + 1}
		}
		return inbox.Swept{Removed: int(removed), Next: next, Done: next.Pass == len(passes)}, nil
	}
	return inbox.Swept{Next: at, Done: true}, nil
}

// takeLease reports whether the owner is the one that sweeps now. The lease is a
// row of the table, under a consumer that no handler can have: a lock of the
// session would not outlive a batch behind a pooler such as PgBouncer, and one of
// the transaction would let all owners take turns.
func (r *delivery) takeLease(ctx context.Context, tx *sqlx.Tx, owner string) (bool, error) {
	key := []any{r.dialect.bind(leaseConsumer), r.dialect.bind(""), r.dialect.bind(leaseID)}
	args := append([]any{owner}, key...)
	n, err := affected(tx.ExecContext(ctx, r.dialect.lease, append(args, owner, r.dialect.duration(inbox.SweepLease))...))
	if err != nil || n > 0 {
		return n > 0, err
	}
	n, err = affected(tx.ExecContext(ctx, r.dialect.newLease, append(key, owner)...))
	return n > 0, err
}

// The key of the lease. Its owner is in the column event_type.
const (
	leaseConsumer = ""
	leaseID       = "sweep"
)

// pass is a range of consumers that have one window, as they are stored: from
// inclusive, to exclusive, compared by bytes.
type pass struct {
	from, to string
	window   time.Duration
}

// passes returns what is swept: the store's own consumers, or all. A window that
// does not end has no pass.
func (s *Store) passes(all bool) []pass {
	own := map[string]time.Duration{}
	for consumer := range s.cfg.Windows {
		own[inNamespace(s.cfg.Namespace, consumer)] = s.cfg.window(consumer)
	}
	var passes []pass
	add := func(p pass) {
		if p.window > 0 && p.from < p.to {
			passes = append(passes, p)
		}
	}
	for _, p := range s.ranges(all) {
		p.window = max(s.cfg.Window, 0)
		for _, consumer := range slices.Sorted(maps.Keys(own)) {
			if consumer < p.from || consumer >= p.to {
				continue
			}
			next := consumer + first // no name is between them
			add(pass{from: p.from, to: consumer, window: p.window})
			add(pass{from: consumer, to: next, window: own[consumer]})
			p.from = next
		}
		add(p)
	}
	return passes
}

// ranges returns the consumers of the store's own namespace, or all.
func (s *Store) ranges(all bool) []pass {
	switch {
	case all:
		return []pass{{from: first, to: last}}
	case s.cfg.Namespace == "":
		// What inNamespace leaves as it is, and what it gives an empty namespace.
		return []pass{{from: first, to: "~"}, {from: "~/", to: "~0"}, {from: "\x7f", to: last}}
	default:
		// The byte after the slash ends what begins with the namespace.
		return []pass{{from: "~" + s.cfg.Namespace + "/", to: "~" + s.cfg.Namespace + "0"}}
	}
}

// first and last stand before and after the name of every consumer, which is of
// UTF-8 without NUL and has at most [inbox.MaxConsumer] bytes.
//
//nolint:gochecknoglobals // constant
var (
	first = "\x01"
	last  = strings.Repeat("\U0010FFFF", inbox.MaxConsumer/4+1)
)
