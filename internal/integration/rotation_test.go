package integration_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

// pair is an inbox of two generations, with a table of effects, of one test.
type pair struct {
	t     *testing.T
	db    *sql.DB // for what is done from outside
	table string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	servers.Postgres.Need(t)
	p := &pair{t: t, db: open(t, "pgx", servers.Postgres.Address()), table: someTable()}
	for _, table := range []string{"_current", "_previous", "_effects", ""} {
		drop(t, p.db, "TABLE IF EXISTS "+p.table+table)
	}
	p.exec("CREATE TABLE " + p.table + "_effects (id text NOT NULL)")
	return p
}

// created creates the tables.
func (p *pair) created() *pair {
	p.t.Helper()
	if err := p.store(nil).CreateTable(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.unvacuumed()
	return p
}

// unvacuumed keeps the server from a vacuum, for which a rotation would not wait.
func (p *pair) unvacuumed() {
	p.t.Helper()
	p.exec("ALTER TABLE " + p.table + "_current SET (autovacuum_enabled = off)")
	p.exec("ALTER TABLE " + p.table + "_previous SET (autovacuum_enabled = off)")
}

// store returns a store with a pool of its own, as another process has.
func (p *pair) store(params map[string]string, configure ...func(*inboxsql.Config)) *inboxsql.Store {
	p.t.Helper()
	return p.on(open(p.t, "pgx", postgresDSN(p.t, params)), configure...)
}

func (p *pair) on(db *sql.DB, configure ...func(*inboxsql.Config)) *inboxsql.Store {
	p.t.Helper()
	db.SetMaxOpenConns(5)
	db.SetMaxIdleConns(5)
	c := &inboxsql.Config{Dialect: inboxsql.PostgresRotating, Table: p.table}
	for _, f := range configure {
		f(c)
	}
	return inboxsql.MustNew(db, c)
}

func (p *pair) exec(statement string) {
	p.t.Helper()
	if _, err := p.db.ExecContext(p.t.Context(), statement); err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
}

func query[T any](p *pair, query string, args ...any) (value T) {
	p.t.Helper()
	if err := p.db.QueryRowContext(p.t.Context(), query, args...).Scan(&value); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	return value
}

// generation names the table that claims go into: another one after a rotation.
func (p *pair) generation() int64 {
	p.t.Helper()
	return query[int64](p, "SELECT to_regclass($1)::oid::bigint", p.table+"_current")
}

func (p *pair) count(suffix string) int {
	p.t.Helper()
	return query[int](p, "SELECT count(*) FROM "+p.table+suffix)
}

// age has all keys of a generation be received so long ago.
func (p *pair) age(suffix string, ago time.Duration) {
	p.t.Helper()
	p.exec(fmt.Sprintf("UPDATE %s%s SET received_at = now() - %d * interval '1 second'", p.table, suffix, int64(ago/time.Second)))
}

// write is an effect of a handler.
func (p *pair) write(ctx context.Context, id string) error {
	_, err := exec(ctx, "INSERT INTO "+p.table+"_effects (id) VALUES ('"+id+"')")
	return err
}

func (p *pair) process(ctx context.Context, s inbox.Store, id string) (duplicate bool, err error) {
	_, duplicate, err = s.Once(ctx, d(id), func(ctx context.Context) (inbox.Effect, error) { return inbox.Effect{}, p.write(ctx, id) })
	return duplicate, err
}

func (p *pair) mustProcess(s inbox.Store, id string, wantDuplicate bool) {
	p.t.Helper()
	if duplicate, err := p.process(p.t.Context(), s, id); err != nil || duplicate != wantDuplicate {
		p.t.Fatalf("delivery %s: got duplicate %t, error %v, want %t", id, duplicate, err, wantDuplicate)
	}
}

// sweep reports whether it rotated.
func (p *pair) sweep(s *inboxsql.Store) (rotated bool) {
	p.t.Helper()
	before := p.generation()
	swept, err := s.Sweep(p.t.Context(), someBatch())
	if err != nil || !swept.Done || swept.Elsewhere {
		p.t.Fatalf("got %+v, error %v", swept, err)
	}
	return p.generation() != before
}

func (p *pair) mustRotate(s *inboxsql.Store) {
	p.t.Helper()
	if !p.sweep(s) {
		p.t.Fatal("the tables did not rotate")
	}
}

func someBatch() inbox.Batch { return inbox.Batch{Owner: "cleaner", Limit: 1} }

// await returns when so many sessions wait for a lock of this mode on the table, or
// false when given is done first.
func (p *pair) await(generation int64, mode string, n int, given <-chan struct{}) bool {
	p.t.Helper()
	for {
		if query[int](p, "SELECT count(*) FROM pg_locks WHERE relation = $1::bigint AND mode = $2 AND NOT granted", generation, mode) >= n {
			return true
		}
		select {
		case <-given:
			return false
		default:
		}
	}
}

// over is the age at which a key of the default window goes.
const over = inbox.DefaultWindow + inbox.ClockSkew

func TestRotationKeepsEachKeyForItsWindow(t *testing.T) {
	t.Parallel()

	t.Run("by the longest window of all consumers, and to the second", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s := p.store(nil, func(c *inboxsql.Config) {
			c.Window, c.Windows = 2*time.Hour, map[string]time.Duration{"hasty": time.Hour, "patient": 3 * time.Hour}
		})
		p.mustProcess(s, "1", false)
		p.mustRotate(s)
		p.mustProcess(s, "2", false)
		p.mustProcess(s, "1", true)
		p.age("_previous", 3*time.Hour+inbox.ClockSkew-30*time.Second)
		if p.sweep(s) {
			t.Error("the tables rotated before the longest window was over")
		}
		p.age("_previous", 3*time.Hour+inbox.ClockSkew+time.Second)
		p.mustRotate(s)
		p.mustProcess(s, "1", false)
		p.mustProcess(s, "2", true)
	})

	t.Run("and the youngest of a generation counts", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s := p.store(nil)
		p.mustProcess(s, "old", false)
		p.age("_current", 2*over)
		p.mustProcess(s, "young", false)
		p.mustRotate(s)
		p.mustProcess(s, "next", false)
		if p.sweep(s) {
			t.Error("a young key went with an old one")
		}
		p.mustProcess(s, "young", true)
	})

	t.Run("and for ever where one consumer's keys are kept for ever", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s := p.store(nil, func(c *inboxsql.Config) {
			c.Window, c.Windows = time.Hour, map[string]time.Duration{"archive": -1}
		})
		p.mustProcess(s, "1", false)
		p.age("_current", 100*over)
		if p.sweep(s) {
			t.Error("the tables rotated")
		}
	})

	t.Run("and a table at rest stays as it is", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s := p.store(nil)
		if p.sweep(s) {
			t.Error("empty tables rotated")
		}
		p.mustProcess(s, "1", false)
		p.mustRotate(s)
		p.age("_previous", 2*over)
		if p.sweep(s) {
			t.Error("the tables rotated for nothing")
		}
	})

	t.Run("and a store of one namespace does not speak for all", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s := p.store(nil, func(c *inboxsql.Config) { c.Namespace = "billing" })
		p.mustProcess(s, "1", false)
		if swept, err := s.Sweep(t.Context(), someBatch()); err == nil || !strings.Contains(err.Error(), "retention.Config.All") {
			t.Errorf("got %+v, error %v", swept, err)
		}
		b := someBatch()
		b.All = true
		if _, err := s.Sweep(t.Context(), b); err != nil || p.count("_previous") != 1 {
			t.Errorf("got error %v, and %d keys in the previous table", err, p.count("_previous"))
		}
	})

	t.Run("and estimates how many keys went", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s := p.store(nil)
		p.exec("INSERT INTO " + p.table + "_previous SELECT 'invoices', '', 'old ' || i, NULL, now() - interval '1 year', now() FROM generate_series(1, 500) i")
		p.exec("ANALYZE " + p.table + "_previous")
		p.mustProcess(s, "1", false)
		if swept, err := s.Sweep(t.Context(), someBatch()); err != nil || swept.Removed < 400 || swept.Removed > 600 {
			t.Errorf("got %+v, error %v, want about 500 keys", swept, err)
		}
	})
}

// TestRotationBesideALongHandler looks at what deliveries see of a rotation that does
// not get through.
func TestRotationBesideALongHandler(t *testing.T) {
	t.Parallel()
	p := newPair(t).created()
	holder, other := p.store(nil), p.store(nil)
	p.mustProcess(other, "0", false) // both know the tables
	generation := p.generation()
	running, finish, held := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, _, err := holder.Once(t.Context(), d("long"), func(ctx context.Context) (inbox.Effect, error) {
			close(running)
			<-finish
			return inbox.Effect{}, p.write(ctx, "long")
		})
		held <- err
	}()
	<-running
	for range 3 {
		if swept, err := other.Sweep(t.Context(), someBatch()); !errors.Is(err, inbox.ErrBusy) {
			t.Fatalf("got %+v, error %v, want %q", swept, err, inbox.ErrBusy)
		}
	}
	p.mustProcess(other, "after a rotation gave up", false)
	// And one that comes while a rotation waits.
	waited := false
	for i := 0; i < 100 && !waited; i++ {
		gaveUp, result := make(chan struct{}), make(chan error, 1)
		go func() {
			defer close(gaveUp)
			_, err := other.Sweep(t.Context(), someBatch())
			result <- err
		}()
		waited = p.await(generation, "AccessExclusiveLock", 1, gaveUp)
		p.mustProcess(other, "behind a rotation "+strconv.Itoa(i), false)
		if err := <-result; !errors.Is(err, inbox.ErrBusy) {
			t.Fatalf("got %v, want %q", err, inbox.ErrBusy)
		}
	}
	if !waited {
		t.Fatal("no rotation was seen waiting")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.Sweep(ctx, someBatch()); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled sweep: %v", err)
	}
	select {
	case err := <-held:
		t.Fatalf("the handler ended: %v", err)
	default:
	}
	if p.generation() != generation {
		t.Fatal("the tables rotated under the handler")
	}
	close(finish)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	p.mustRotate(other)
	p.mustProcess(other, "long", true)
	p.mustProcess(holder, "after a rotation gave up", true)
}

// TestRotationAtOnce has two processes find that a rotation is due, and then wait for
// the tables: the second one must not remove what the first one has just kept.
func TestRotationAtOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t).created()
	stores := []*inboxsql.Store{p.store(nil), p.store(nil)}
	for i := range 100 {
		id := strconv.Itoa(i)
		for _, s := range stores {
			p.mustProcess(s, id, s == stores[1])
		}
		p.age("_previous", over+time.Second)
		generation := p.generation()
		blocker, err := p.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = blocker.ExecContext(t.Context(), "LOCK TABLE "+p.table+"_current IN ROW EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		gaveUp := make(chan struct{})
		errs := make([]error, len(stores))
		var wg sync.WaitGroup
		for n, s := range stores {
			wg.Go(func() { _, errs[n] = s.Sweep(t.Context(), someBatch()) })
		}
		go func() { wg.Wait(); close(gaveUp) }()
		both := p.await(generation, "AccessExclusiveLock", len(stores), gaveUp)
		if err = blocker.Rollback(); err != nil {
			t.Fatal(err)
		}
		<-gaveUp
		for _, err := range errs {
			both = both && err == nil
			if err != nil && !errors.Is(err, inbox.ErrBusy) {
				t.Fatal(err)
			}
		}
		p.mustProcess(stores[0], id, true)
		if both {
			return
		}
	}
	t.Fatal("the two never waited together")
}

// snapshotBefore begins each transaction at REPEATABLE READ, whatever is asked for,
// as a store that did not set the level would where that is the default.
type snapshotBefore struct{ driver.Connector }

func (c snapshotBefore) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &snapshotBeforeConn{conn.(*stdlib.Conn)}, nil //nolint:errcheck,forcetypeassert // as pgx makes them
}

type snapshotBeforeConn struct{ *stdlib.Conn }

func (c *snapshotBeforeConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	o.Isolation = driver.IsolationLevel(sql.LevelRepeatableRead)
	return c.Conn.BeginTx(ctx, o)
}

// levels are the stores of the races, and whether they double. They are not to wait
// for the disk.
func levels() map[string]struct {
	store   func(p *pair) *inboxsql.Store
	doubles bool
} {
	return map[string]struct {
		store   func(p *pair) *inboxsql.Store
		doubles bool
	}{
		"READ COMMITTED": {func(p *pair) *inboxsql.Store { return p.store(map[string]string{"synchronous_commit": "off"}) }, false},
		"REPEATABLE READ as the session's default": {func(p *pair) *inboxsql.Store {
			return p.store(map[string]string{"default_transaction_isolation": "repeatable read", "synchronous_commit": "off"})
		}, false},
		"SERIALIZABLE as the session's default": {func(p *pair) *inboxsql.Store {
			return p.store(map[string]string{"default_transaction_isolation": "serializable", "synchronous_commit": "off"})
		}, false},
		"REPEATABLE READ behind the store's back": {func(p *pair) *inboxsql.Store {
			config, err := pgx.ParseConfig(postgresDSN(p.t, map[string]string{"synchronous_commit": "off"}))
			if err != nil {
				p.t.Fatal(err)
			}
			return p.on(closing(p.t, sql.OpenDB(snapshotBefore{stdlib.GetConnector(*config)})))
		}, true},
	}
}

// TestDeliveryBehindARotation has a delivery wait for a rotation, which waits for
// another delivery of the key: the snapshot of the first one must come after both.
func TestDeliveryBehindARotation(t *testing.T) {
	t.Parallel()
	for name, c := range levels() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t).created()
			first, cleaner, second := c.store(p), c.store(p), c.store(p)
			for i := range 100 {
				for n, s := range []*inboxsql.Store{first, cleaner, second} { // all are connected
					p.mustProcess(s, fmt.Sprintf("warm %d", i), n > 0)
				}
				id := strconv.Itoa(i)
				p.age("_previous", over+time.Second)
				generation := p.generation()
				running, finish := make(chan struct{}), make(chan struct{})
				errs := make(chan error, 1)
				go func() {
					_, duplicate, err := first.Once(t.Context(), d(id), func(ctx context.Context) (inbox.Effect, error) {
						close(running)
						<-finish
						return inbox.Effect{}, p.write(ctx, id)
					})
					if duplicate {
						err = errors.Join(err, errors.New("the first delivery is a duplicate"))
					}
					errs <- err
				}()
				<-running
				swept := make(chan struct{})
				var sweepErr error
				go func() {
					defer close(swept)
					_, sweepErr = cleaner.Sweep(t.Context(), someBatch())
				}()
				queued := p.await(generation, "AccessExclusiveLock", 1, swept)
				var duplicate bool
				var err error
				delivered := make(chan struct{})
				go func() {
					defer close(delivered)
					duplicate, err = p.process(t.Context(), second, id)
				}()
				queued = queued && p.await(generation, "RowExclusiveLock", 1, swept)
				close(finish)
				<-swept
				<-delivered
				if err = errors.Join(err, <-errs); err != nil {
					t.Fatal(err)
				}
				if sweepErr != nil && !errors.Is(sweepErr, inbox.ErrBusy) {
					t.Fatal(sweepErr)
				}
				if !queued || sweepErr != nil {
					continue // the rotation gave up before both waited
				}
				if duplicate == c.doubles {
					t.Errorf("got duplicate %t, want %t", duplicate, !c.doubles)
				}
				return
			}
			t.Fatal("the delivery never waited for a rotation")
		})
	}
}

// TestRotationRace has each key delivered four times, the last time after some
// others, while the tables rotate as often as the window of a key allows.
//
//nolint:tparallel,paralleltest // one race at a time: together they would take too many of the server's connections
func TestRotationRace(t *testing.T) {
	t.Parallel()
	for name, c := range levels() {
		t.Run(name, func(t *testing.T) {
			keys := 600
			switch {
			case c.doubles:
				keys = 1200 // or it might not
			case name == "READ COMMITTED":
				keys = 2400
			}
			r := newRace(t, keys, c.store)
			started := time.Now()
			r.run()
			doubled := query[int](r.pair, "SELECT count(*) FROM (SELECT id FROM "+r.table+"_effects GROUP BY id HAVING count(*) > 1) doubled")
			lost := keys - query[int](r.pair, "SELECT count(DISTINCT id) FROM "+r.table+"_effects")
			t.Logf("%d keys, %d deliveries, %d rotations (%d busy) in %s: %d doubled, %d lost", keys, 4*keys, r.rotations, r.busy, time.Since(started).Round(time.Millisecond), doubled, lost)
			if lost != 0 || r.rotations < keys/200 {
				t.Errorf("%d keys were lost over %d rotations", lost, r.rotations)
			}
			if (doubled > 0) != c.doubles {
				t.Errorf("%d keys were processed twice", doubled)
			}
		})
	}
}

type race struct {
	*pair
	stores  []*inboxsql.Store
	cleaner []*inboxsql.Store

	mu        sync.Mutex
	moved     sync.Cond
	left      []int // deliveries of each key
	fed       int   // the newest key that was fed
	done      int   // all keys before it have been delivered four times
	rotations int
	busy      int
}

const (
	raceWorkers = 16
	raceLag     = 15 // keys between the third and the last delivery of a key
)

func newRace(t *testing.T, keys int, store func(*pair) *inboxsql.Store) *race {
	t.Helper()
	r := &race{pair: newPair(t).created(), left: slices.Repeat([]int{4}, keys)}
	r.moved.L = &r.mu
	for range 4 {
		r.stores = append(r.stores, store(r.pair))
	}
	r.cleaner = r.stores[:2]
	return r
}

func (r *race) run() {
	feed := make(chan int)
	var workers, cleaners sync.WaitGroup
	for w := range raceWorkers {
		workers.Go(func() {
			for key := range feed {
				r.deliver(r.stores[w%len(r.stores)], key)
			}
		})
	}
	cleaners.Go(r.rotate)
	for key := range len(r.left) + raceLag {
		if key < len(r.left) {
			r.mu.Lock()
			r.fed = key
			r.mu.Unlock()
			for range 3 {
				feed <- key
			}
		}
		if key >= raceLag {
			feed <- key - raceLag
		}
	}
	close(feed)
	workers.Wait()
	cleaners.Wait()
}

func (r *race) deliver(s *inboxsql.Store, key int) {
	var err error
	for range 10 {
		if r.t.Failed() {
			break
		}
		if _, err = r.process(r.t.Context(), s, strconv.Itoa(key)); err == nil {
			break
		}
	}
	if err != nil {
		r.t.Errorf("key %d: %v", key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[key]--
	for r.done < len(r.left) && r.left[r.done] == 0 {
		r.done++
	}
	r.moved.Broadcast()
}

// rotate rotates as soon as no delivery is left of the keys that go. Two processes
// try at the same time.
func (r *race) rotate() {
	before := r.generation()
	for {
		r.age("_previous", over+time.Second)
		var wg sync.WaitGroup
		for _, s := range r.cleaner {
			wg.Go(func() {
				_, err := s.Sweep(r.t.Context(), someBatch())
				if err != nil && !errors.Is(err, inbox.ErrBusy) {
					r.t.Error(err)
				}
				if err != nil {
					r.mu.Lock()
					defer r.mu.Unlock()
					r.busy++
				}
			})
		}
		wg.Wait()
		after := r.generation()
		r.mu.Lock()
		if after != before {
			r.rotations++
			before = after
			// What is in the previous table now was fed up to here.
			for last := r.fed; r.done <= last && r.done < len(r.left); {
				r.moved.Wait()
			}
		}
		finished := r.done == len(r.left)
		r.mu.Unlock()
		if finished || r.t.Failed() {
			return
		}
	}
}

// TestRotationAfterTheHandlerEndedItsTransaction looks for the claim in the previous
// table.
func TestRotationAfterTheHandlerEndedItsTransaction(t *testing.T) {
	t.Parallel()
	endAndRotate := func(ctx context.Context, p *pair, s *inboxsql.Store) error {
		if err := inbox.MustTx[*sql.Tx](ctx).Commit(); err != nil {
			return err
		}
		p.mustRotate(s) //nolint:contextcheck // a session of its own
		return nil
	}

	t.Run("it succeeds: what it produced is kept", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s, other := p.store(nil), p.store(nil)
		_, _, err := s.Once(t.Context(), d("1"), func(ctx context.Context) (inbox.Effect, error) {
			return inbox.Effect{Record: []byte("record"), Result: []byte("result")}, endAndRotate(ctx, p, other)
		})
		if !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v, want %q", err, inbox.ErrTxEnded)
		}
		e, duplicate, err := s.Once(t.Context(), d("1"), func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil })
		if err != nil || !duplicate || string(e.Record) != "record" || string(e.Result) != "result" {
			t.Errorf("got %+v, duplicate %t, error %v", e, duplicate, err)
		}
	})

	t.Run("it fails: its claim is removed", func(t *testing.T) {
		t.Parallel()
		p := newPair(t).created()
		s, other := p.store(nil), p.store(nil)
		failed := errors.New("no credit")
		_, _, err := s.Once(t.Context(), d("1"), func(ctx context.Context) (inbox.Effect, error) {
			return inbox.Effect{}, cmp.Or(endAndRotate(ctx, p, other), failed)
		})
		if !errors.Is(err, failed) || !errors.Is(err, inbox.ErrTxEnded) {
			t.Errorf("got %v, want %q and %q", err, failed, inbox.ErrTxEnded)
		}
		p.mustProcess(s, "1", false)
	})
}

func TestKeysOfThePreviousTable(t *testing.T) {
	t.Parallel()
	p := newPair(t).created()
	s := p.store(nil)
	_, _, err := s.Once(t.Context(), d("1"), func(context.Context) (inbox.Effect, error) {
		return inbox.Effect{Record: []byte("record")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.mustRotate(s)
	if e, duplicate, err := s.Once(t.Context(), d("1"), mustNotRun); err != nil || !duplicate || string(e.Record) != "record" || e.Age <= 0 {
		t.Errorf("the delivery: got %+v, duplicate %t, error %v", e, duplicate, err)
	}
	if e, found, err := s.Lookup(t.Context(), d("1").Key); err != nil || !found || string(e.Record) != "record" {
		t.Errorf("the look: got %+v, %t, error %v", e, found, err)
	}
	if e, found, err := s.Forget(t.Context(), d("1").Key); err != nil || !found || string(e.Record) != "record" {
		t.Errorf("it was forgotten: got %+v, %t, error %v", e, found, err)
	}
	if _, found, err := s.Lookup(t.Context(), d("1").Key); err != nil || found {
		t.Errorf("after that: %t, error %v", found, err)
	}
	p.mustProcess(s, "1", false)
	p.age("_previous", over+time.Second)
	p.mustRotate(s)
	p.mustProcess(s, "2", false)
	if n, err := s.ForgetRange(t.Context(), inboxsql.Range{Consumer: "invoices"}, nil); err != nil || n != 2 {
		t.Errorf("got %d keys, error %v, want one of each table", n, err)
	}
	p.mustProcess(s, "1", false)
	p.mustProcess(s, "2", false)
}

func mustNotRun(context.Context) (inbox.Effect, error) {
	return inbox.Effect{}, errors.New("the handler ran")
}

// TestRotationByARoleThatDoesNotOwnTheTables processes as that role, and sweeps as
// another.
func TestRotationByARoleThatDoesNotOwnTheTables(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	role := p.table + "_role"
	p.exec("CREATE ROLE " + role)
	drop(t, p.db, "ROLE "+role)
	for _, table := range []string{"_current", "_previous", "_effects"} {
		drop(t, p.db, "TABLE IF EXISTS "+p.table+table) // before the role
	}
	p.created()
	for _, table := range []string{"_current", "_previous", "_effects"} {
		p.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON " + p.table + table + " TO " + role)
	}
	consumer, owner := p.store(map[string]string{"role": role}), p.store(nil)
	p.mustProcess(consumer, "1", false)
	_, err := consumer.Sweep(t.Context(), someBatch())
	var failed *inbox.StoreError
	if !errors.As(err, &failed) || failed.Op != inbox.OpSweep || errors.Is(err, inbox.ErrBusy) || !strings.Contains(err.Error(), "the role that owns the tables") {
		t.Errorf("got %v", err)
	}
	p.mustRotate(owner)
	p.mustProcess(consumer, "1", true)
	p.mustProcess(consumer, "2", false)
}

// recording keeps the statements that return rows.
type recording struct {
	driver.Connector
	mu      sync.Mutex
	queries []string
}

func (c *recording) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recordingConn{conn.(*stdlib.Conn), c}, nil //nolint:errcheck,forcetypeassert // as pgx makes them
}

type recordingConn struct {
	*stdlib.Conn
	to *recording
}

func (c *recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.to.mu.Lock()
	c.to.queries = append(c.to.queries, query)
	c.to.mu.Unlock()
	return c.Conn.QueryContext(ctx, query, args)
}

func TestRotatingClaimUsesBothPrimaryKeys(t *testing.T) {
	t.Parallel()
	p := newPair(t).created()
	config, err := pgx.ParseConfig(servers.Postgres.Address())
	if err != nil {
		t.Fatal(err)
	}
	c := &recording{Connector: stdlib.GetConnector(*config)}
	p.mustProcess(p.on(closing(t, sql.OpenDB(c))), "1", false)
	i := slices.IndexFunc(c.queries, func(q string) bool { return strings.Contains(q, "INSERT INTO") })
	if i < 0 {
		t.Fatalf("no claim in %q", c.queries)
	}
	for _, table := range []string{"_current", "_previous"} {
		p.exec("INSERT INTO " + p.table + table + " SELECT 'invoices', '', '" + table + "' || i, NULL, now(), now() FROM generate_series(1, 5000) i")
		p.exec("ANALYZE " + p.table + table)
	}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		db := open(t, "pgx", postgresDSN(t, map[string]string{"plan_cache_mode": mode}))
		rows, err := db.QueryContext(t.Context(), "EXPLAIN "+c.queries[i], "invoices", "", "_previous7", nil, nil, nil, "1000ms")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close() //nolint:errcheck // reported by rows.Err
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Conflict Arbiter Indexes: " + p.table + "_pkey_1", "using " + p.table + "_pkey_2"} {
			if !strings.Contains(plan.String(), want) {
				t.Errorf("%s: the plan does not say %q:\n%s", mode, want, plan.String())
			}
		}
	}
}
