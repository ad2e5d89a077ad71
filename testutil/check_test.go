package testutil_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
	"github.com/watermill-inbox/inbox/testutil"
)

// shop is a database with an inbox, and two tables of a handler's.
func shop(t *testing.T) testutil.Check {
	t.Helper()
	db := sqlitetest.Open(t, "")
	store := inboxsql.MustNew(db, nil)
	if err := store.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`CREATE TABLE invoices (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT, amount REAL)`,
		`CREATE TABLE "Stock" (item TEXT, n INTEGER)`, // without a key
		`INSERT INTO "Stock" VALUES ('pen', 5), ('pen', 5), ('ink', NULL)`,
		`CREATE VIEW many AS SELECT * FROM "Stock" WHERE n > 1`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return testutil.Check{DB: db, Store: store, Timeout: 5 * time.Second}
}

// invoice is an effect through the transaction of ctx.
func invoice(ctx context.Context, id string) error {
	return inTx(ctx, `INSERT INTO invoices (order_id, amount) VALUES (?, 1.5)`, id)
}

func inTx(ctx context.Context, statement string, args ...any) error {
	tx, err := inboxsql.StdTx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, statement, args...)
	return err
}

func TestCheckAtomic(t *testing.T) {
	t.Parallel()
	exec := func(ctx context.Context, db *sql.DB, statement string, args ...any) error {
		_, err := db.ExecContext(ctx, statement, args...)
		return err
	}
	for name, c := range map[string]struct {
		change func(c *testutil.Check)
		// before runs ahead of the transaction's first write: SQLite has one writer.
		before  func(ctx context.Context, db *sql.DB) error
		handler func(c *testutil.Check, msg *message.Message) ([]*message.Message, error)
		says    []string // of each report; none: nothing is reported
	}{
		"a handler that keeps to the transaction": {},
		"one that moves sequences only": {handler: func(_ *testutil.Check, msg *message.Message) ([]*message.Message, error) {
			return nil, errors.Join(invoice(msg.Context(), "1"), inTx(msg.Context(), "DELETE FROM invoices"))
		}},
		"an insert through the pool": {
			before: func(ctx context.Context, db *sql.DB) error {
				return exec(ctx, db, `INSERT INTO invoices (order_id) VALUES ('o1')`)
			},
			says: []string{"table main.invoices has changed:\n  + id=1, order_id=\"o1\", amount=NULL\n", "inboxsql.Tx"},
		},
		"an update through the pool": {
			before: func(ctx context.Context, db *sql.DB) error {
				return exec(ctx, db, `UPDATE "Stock" SET n = 4 WHERE item = 'ink'`)
			},
			says: []string{"table main.Stock has changed:\n  - item=\"ink\", n=NULL\n  + item=\"ink\", n=4\n"},
		},
		"a delete of one of two equal rows through the pool": {
			before: func(ctx context.Context, db *sql.DB) error {
				return exec(ctx, db, `DELETE FROM "Stock" WHERE rowid = 1`)
			},
			says: []string{"table main.Stock has changed:\n  - item=\"pen\", n=5\nThe transaction"},
		},
		"a table made through the pool": {
			before: func(ctx context.Context, db *sql.DB) error { return exec(ctx, db, `CREATE TABLE late (id)`) },
			says:   []string{"table main.late was created"},
		},
		"a table dropped through the pool": {
			before: func(ctx context.Context, db *sql.DB) error { return exec(ctx, db, `DROP TABLE "Stock"`) },
			says:   []string{"table main.Stock was dropped"},
		},
		"a table that is to be ignored": {
			change: func(c *testutil.Check) { c.Ignore = []string{"Stock"} },
			before: func(ctx context.Context, db *sql.DB) error { return exec(ctx, db, `DELETE FROM "Stock"`) },
		},
		"a transaction that the handler commits": {
			handler: func(_ *testutil.Check, msg *message.Message) ([]*message.Message, error) {
				return nil, errors.Join(invoice(msg.Context(), "o1"), inbox.MustTx[*sql.Tx](msg.Context()).Commit())
			},
			says: []string{"table main.invoices has changed:\n  + id=1, order_id=\"o1\", amount=1.5\n"},
		},
		"a handler that waits for itself": {
			change: func(c *testutil.Check) { c.DB.SetMaxOpenConns(1); c.Timeout = time.Second },
			handler: func(c *testutil.Check, msg *message.Message) ([]*message.Message, error) {
				return nil, errors.Join(invoice(msg.Context(), "o1"), exec(msg.Context(), c.DB, `DELETE FROM "Stock"`))
			},
			says: []string{"did not return within 1s", "inboxsql.Tx"},
		},
		"a handler that fails": {
			handler: func(*testutil.Check, *message.Message) ([]*message.Message, error) {
				return nil, errors.New("out of ink")
			},
			says: []string{"only what ran before that was checked: the handler failed: out of ink"},
		},
		"a handler that panics": {
			handler: func(*testutil.Check, *message.Message) ([]*message.Message, error) { panic("out of ink") },
			says:    []string{"the handler panicked: out of ink"},
		},
		"a handler that ends its goroutine": {
			handler: func(*testutil.Check, *message.Message) ([]*message.Message, error) {
				runtime.Goexit()
				return nil, nil
			},
			says: []string{"the handler ended its goroutine"},
		},
		"a handler without the transaction": {
			handler: func(_ *testutil.Check, msg *message.Message) ([]*message.Message, error) {
				return nil, invoice(context.WithoutCancel(context.Background()), msg.UUID)
			},
			says: []string{"the handler failed: inbox: no transaction"},
		},
		"a message that is not protected": {
			change: func(c *testutil.Check) {
				c.Config = &inboxmw.Config{Handlers: map[string]inboxmw.Handler{"invoices": {Unprotected: true}}}
			},
			handler: func(*testutil.Check, *message.Message) ([]*message.Message, error) { return nil, nil },
			says:    []string{"nothing was checked: the message was not protected"},
		},
		"a message without a key": {
			change: func(c *testutil.Check) {
				c.Config = &inboxmw.Config{Handler: inboxmw.Handler{Key: inboxmw.Metadata("none")}}
			},
			says: []string{"nothing was checked: ", "the message id is empty"},
		},
		"a duplicate": {
			change: func(c *testutil.Check) {
				key := inbox.Key{Consumer: "invoices", MessageID: "o1"}
				_, _, err := c.Store.Once(context.Background(), inbox.Delivery{Key: key}, func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil })
				if err != nil {
					panic(err)
				}
			},
			says: []string{"nothing was checked: message invoices/o1 is a duplicate"},
		},
		"a message that the handler publishes": {
			change: func(c *testutil.Check) { c.Published = &testutil.Recorder{} },
			handler: func(c *testutil.Check, msg *message.Message) ([]*message.Message, error) {
				return nil, errors.Join(invoice(msg.Context(), "1"), c.Published.Publish("mails", message.NewMessage("m1", nil)))
			},
			says: []string{"message m1 was published to mails before the commit", "Inbox.Publisher"},
		},
		"a table with too many rows": {
			change: func(c *testutil.Check) { c.MaxRows = 2 },
			says:   []string{"table main.Stock has more than 2 rows and was not compared", "Check.MaxRows"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := shop(t)
			check.Name = "invoices"
			if c.change != nil {
				c.change(&check)
			}
			check.Handler = func(msg *message.Message) ([]*message.Message, error) {
				if c.handler != nil {
					return c.handler(&check, msg)
				}
				return nil, invoice(msg.Context(), msg.UUID)
			}
			if c.before != nil {
				check.Store = writtenPast{Store: check.Store, write: func(ctx context.Context) error { return c.before(ctx, check.DB) }}
			}
			reports := recorded(t, func(tb testing.TB) { testutil.CheckAtomic(tb, check, message.NewMessage("o1", nil)) })
			if len(c.says) == 0 {
				if len(reports) > 0 {
					t.Errorf("reported is %q", reports)
				}
				return
			}
			if len(reports) != 1 {
				t.Fatalf("reported is %q, want one report", reports)
			}
			for _, text := range c.says {
				if !strings.Contains(reports[0], text) {
					t.Errorf("reported is\n%s\nwhich does not say %q", reports[0], text)
				}
			}
		})
	}
}

// writtenPast writes past the transaction before it begins, as SQLite has one writer
// at a time: a handler there could only wait for itself.
type writtenPast struct {
	inbox.Store
	write func(ctx context.Context) error
}

func (w writtenPast) Once(ctx context.Context, d inbox.Delivery, fn func(context.Context) (inbox.Effect, error)) (inbox.Entry, bool, error) {
	if err := w.write(ctx); err != nil {
		return inbox.Entry{}, false, err
	}
	return w.Store.Once(ctx, d, fn)
}

func TestCheckOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config  *inboxmw.Config
		handler func(c *testutil.Check, msg *message.Message) ([]*message.Message, error)
		says    []string
	}{
		"a handler that is right": {handler: func(_ *testutil.Check, msg *message.Message) ([]*message.Message, error) {
			return []*message.Message{message.NewMessage("mail "+msg.UUID, []byte("mail"))}, invoice(msg.Context(), msg.UUID)
		}},
		"a key that differs each time": {
			config: &inboxmw.Config{Handler: inboxmw.Handler{Key: counting()}},
			says:   []string{"one message has 6 keys", "Config.Handler.Key"},
		},
		"a hook for duplicates with an effect": {
			config: nil, // see below
			says:   []string{"table main.Stock has changed:", "OnDuplicate"},
		},
		"a handler that fails": {
			handler: func(*testutil.Check, *message.Message) ([]*message.Message, error) {
				return nil, errors.New("out of ink")
			},
			says: []string{"delivery 1 did not succeed, so nothing was checked: out of ink"},
		},
		"a handler that is not protected": {
			config:  &inboxmw.Config{Handler: inboxmw.Handler{Skip: func(*message.Message) bool { return true }}},
			handler: func(*testutil.Check, *message.Message) ([]*message.Message, error) { return nil, nil },
			says:    []string{"nothing was checked: the message was not protected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := shop(t)
			check.Config = c.config
			if strings.HasPrefix(name, "a hook") {
				check.Config = &inboxmw.Config{Handler: inboxmw.Handler{OnDuplicate: func(*message.Message, inbox.Entry) error {
					_, err := check.DB.ExecContext(context.Background(), `INSERT INTO "Stock" VALUES ('duplicate', 1)`)
					return err
				}}}
			}
			check.Handler = func(msg *message.Message) ([]*message.Message, error) {
				if c.handler != nil {
					return c.handler(&check, msg)
				}
				return nil, invoice(msg.Context(), msg.UUID)
			}
			reports := recorded(t, func(tb testing.TB) { testutil.CheckOnce(tb, check, message.NewMessage("o1", nil)) })
			if len(c.says) == 0 && len(reports) > 0 {
				t.Errorf("reported is %q", reports)
			}
			for _, text := range c.says {
				if !strings.Contains(strings.Join(reports, "\n"), text) {
					t.Errorf("reported is %q, which does not say %q", reports, text)
				}
			}
		})
	}
}

// counting is a key that differs each time, as one that is made of a clock.
func counting() inboxmw.Part {
	var mu sync.Mutex
	n := 0
	return func(*message.Message) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return strconv.Itoa(n), nil
	}
}

// recorder is a [testing.TB] that keeps what is reported.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	reports []string
}

// recorded returns what check reports.
func recorded(t *testing.T, check func(tb testing.TB)) []string {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() { // FailNow ends its goroutine
		defer close(ended)
		check(r)
	}()
	<-ended
	return r.reports
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.add(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.add(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.add(fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) FailNow() { runtime.Goexit() }

func (r *recorder) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, text)
}
