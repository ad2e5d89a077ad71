package inboxsql_test

import (
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t, "")
	for name, c := range map[string]struct {
		cfg  inboxsql.Config
		want time.Duration
	}{
		"the default is a week":                       {inboxsql.Config{}, 168 * time.Hour},
		"that of the store":                           {inboxsql.Config{Window: time.Hour}, time.Hour},
		"negative is for ever, which is said as zero": {inboxsql.Config{Window: -1}, 0},
		"that of the consumer":                        {inboxsql.Config{Windows: map[string]time.Duration{"invoices": 2 * time.Hour}}, 2 * time.Hour},
		"that of another consumer does not count":     {inboxsql.Config{Windows: map[string]time.Duration{"mails": 2 * time.Hour}}, 168 * time.Hour},
		"zero for the consumer is the default":        {inboxsql.Config{Window: time.Hour, Windows: map[string]time.Duration{"invoices": 0}}, 168 * time.Hour},
		"negative for the consumer is for ever":       {inboxsql.Config{Windows: map[string]time.Duration{"invoices": -1}}, 0},
		"for ever is longer than any redelivery": {
			inboxsql.Config{Window: -1, Windows: map[string]time.Duration{"invoices": -1}, MaxRedeliveryAge: 1 << 60}, 0,
		},
		"a window may be as short as redelivery": {inboxsql.Config{Window: time.Hour, MaxRedeliveryAge: time.Hour}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s inbox.Windowed = inboxsql.MustNew(db, &c.cfg)
			if got := s.Window("invoices"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
