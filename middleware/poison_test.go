package inboxmw_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/watermill-inbox/inbox"
	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

func TestToPoison(t *testing.T) {
	t.Parallel()
	errBusiness := errors.New("the order has no lines")
	storeErr := func(err error) error { return &inbox.StoreError{Op: inbox.OpCommit, Key: key("o1"), Err: err} }
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},

		{"an error of the handler", errBusiness, true},
		{"a wrapped error of the handler", fmt.Errorf("invoice: %w", errBusiness), true},
		{"a row that the handler does not find", sql.ErrNoRows, true},
		{"a refused key", inbox.Key{Consumer: "a"}.Validate(), true},
		{"a refused consumer, as that is wrong for each message", inbox.Key{MessageID: "1"}.Validate(), false},
		{"bad input that looks like the network", &net.ParseError{Type: "IP address", Text: "x"}, true},
		{"bad input that looks like a URL", &url.Error{Op: "parse", URL: ":", Err: errBusiness}, true},
		{"a refused key, from within the store", storeErr(inbox.Key{Consumer: "a"}.Validate()), true},

		{"a copy in flight", storeErr(inbox.ErrInFlight), false},
		{"a busy database", storeErr(inbox.ErrBusy), false},
		{"a commit that failed", storeErr(errors.New("connection reset")), false},
		{"a claim that failed", &inbox.StoreError{Op: inbox.OpClaim, Err: errors.New("syntax error")}, false},
		{"a transaction that ended", storeErr(inbox.ErrTxEnded), false},
		{"a transaction used too late", fmt.Errorf("handler: %w", inbox.ErrTxEnded), false},
		{"a missing inbox", inbox.ErrNoTx, false},
		{"a missing table", storeErr(inbox.ErrNoTable), false},
		{"a missing topic", inbox.ErrNoTopic, false},
		{"an unreadable record", inbox.ErrRecord, false},
		{"two inboxes", inbox.ErrNested, false},
		{"two handlers as one consumer", inbox.ErrConsumer, false},
		{"a router that closes", fmt.Errorf("query: %w", context.Canceled), false},
		{"a broken connection in the handler", driver.ErrBadConn, false},
		{"a closed connection in the handler", sql.ErrConnDone, false},
		{"a database that cannot be dialled", &net.OpError{Op: "dial", Err: errors.New("refused")}, false},
		{"a lost connection", fmt.Errorf("query: %w", io.ErrUnexpectedEOF), false},
		{"a killed session", sqlStateError("57P01"), false},
		{"a deadlock of the handler's statements", sqlStateError("40P01"), false},
		{"a unique violation of the handler's statements", sqlStateError("23505"), true},
		{"a publisher of a bus that fails after the commit", fmt.Errorf("%w: broker away", inbox.ErrAfterCommit), false},
		{"a permanent error after the commit", errors.Join(inbox.ErrAfterCommit, inbox.Key{Consumer: "a"}.Validate()), false},
		{"a timeout", context.DeadlineExceeded, false},
		{"an error of the handler joined with an outage", errors.Join(errBusiness, storeErr(driver.ErrBadConn)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := inboxmw.ToPoison(c.err); got != c.want {
				t.Errorf("ToPoison(%v) is %t, want %t", c.err, got, c.want)
			}
		})
	}
}

// What the inbox itself answers, judged by its filter.
func TestToPoisonOfEachFailure(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"the handler fails":                            true,
		"the claim fails":                              false,
		"the commit fails":                             false,
		"another delivery is in flight":                false,
		"what it produces is refused":                  true,
		"bind fails":                                   true,
		"it is a duplicate whose record is unreadable": false,
	}
	for _, w := range ways() {
		poison, fails := want[w.name]
		if !fails {
			continue
		}
		t.Run("when "+w.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, w.handler)
			if w.prepare != nil {
				w.prepare(f)
			}
			h := w.end
			if h == nil {
				h = writes("1")
			}
			_, err := f.wrap(h)(f.message("o1"))
			if err == nil || inboxmw.ToPoison(err) != poison {
				t.Errorf("%v: want %t", err, poison)
			}
		})
	}
}

type sqlStateError string

func (e sqlStateError) Error() string { return "database: " + string(e) }

func (e sqlStateError) SQLState() string { return string(e) }
