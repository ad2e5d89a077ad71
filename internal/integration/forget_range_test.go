package integration_test

import (
	"slices"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
)

func TestForgetRange(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeep(t, database)
			k.fill(t, "~shop/invoices", 1200, 3*day)
			k.fill(t, "~shop/invoices", 10, 5*day)
			k.fill(t, "~shop/mails", 10, 3*day)
			k.fill(t, "invoices", 10, 3*day)
			k.fill(t, "~~odd", 10, 3*day)
			shop, plain := k.store(&inboxsql.Config{Namespace: "shop"}), k.store(nil)
			forget := func(s *inboxsql.Store, which inboxsql.Range, want int) []inbox.Entry {
				t.Helper()
				var removed []inbox.Entry
				n, err := s.ForgetRange(t.Context(), which, func(e inbox.Entry) { removed = append(removed, e) })
				if err != nil || n != want || len(removed) != want {
					t.Fatalf("%+v: got %d, told %d, error %v, want %d", which, n, len(removed), err, want)
				}
				return removed
			}
			now := time.Now()
			forget(shop, inboxsql.Range{Consumer: "invoices", Until: now.Add(-4 * day)}, 10)
			forget(shop, inboxsql.Range{Consumer: "nobody"}, 0)
			forget(shop, inboxsql.Range{From: now.Add(-2 * day)}, 0)
			removed := forget(shop, inboxsql.Range{Consumer: "invoices", From: now.Add(-4 * day)}, 1200)
			e := removed[0]
			if e.Key.Consumer != "invoices" || e.Key.Source != "fill" || e.Age < 0 || now.Sub(e.ReceivedAt) > 3*day+time.Minute || now.Sub(e.ReceivedAt) < 3*day-2*time.Hour {
				t.Errorf("got %+v", e)
			}
			if !slices.IsSortedFunc(removed, func(a, b inbox.Entry) int { return a.ReceivedAt.Compare(b.ReceivedAt) }) {
				t.Error("the oldest are not first")
			}
			forget(shop, inboxsql.Range{Until: now.Add(day)}, 10) // mails
			forget(plain, inboxsql.Range{Until: now}, 10)         // of no namespace: "~~odd" is of another one
			if n := k.keys(t); n != 10 {
				t.Errorf("%d keys are left, want 10", n)
			}
			if _, err := plain.ForgetRange(t.Context(), inboxsql.Range{}, nil); err == nil {
				t.Error("all keys can be forgotten by mistake")
			}
			if _, err := plain.ForgetRange(t.Context(), inboxsql.Range{From: now, Until: now.Add(-day)}, nil); err == nil {
				t.Error("a range can end before it begins")
			}
		})
	}
}
