package inboxsql_test

import (
	"database/sql"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

func TestNewRefusesAndNamesTheField(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t, "")
	for name, c := range map[string]struct {
		cfg  inboxsql.Config
		says []string
	}{
		"a table with a blank":                  {inboxsql.Config{Table: "inbox messages"}, []string{"Config.Table", `"inbox messages"`}},
		"a table with a quote":                  {inboxsql.Config{Table: `inbox"; DROP TABLE orders; --`}, []string{"Config.Table"}},
		"a table with a single quote":           {inboxsql.Config{Table: "inbox' OR ''='"}, []string{"Config.Table"}},
		"a table with a backtick":               {inboxsql.Config{Table: "inbox`"}, []string{"Config.Table"}},
		"a table with a semicolon":              {inboxsql.Config{Table: "inbox;"}, []string{"Config.Table"}},
		"a table with a line break at its end":  {inboxsql.Config{Table: "inbox\n"}, []string{"Config.Table"}},
		"a table with a comment":                {inboxsql.Config{Table: "inbox--"}, []string{"Config.Table"}},
		"a table with a placeholder":            {inboxsql.Config{Table: "{schema}"}, []string{"Config.Table"}},
		"a table with NUL":                      {inboxsql.Config{Table: "inbox\x00"}, []string{"Config.Table"}},
		"a table with letters beyond ASCII":     {inboxsql.Config{Table: "posteingänge"}, []string{"Config.Table"}},
		"a table that begins with a digit":      {inboxsql.Config{Table: "1inbox"}, []string{"Config.Table"}},
		"a table of 51 letters":                 {inboxsql.Config{Table: strings.Repeat("t", 51)}, []string{"Config.Table", "at most 50"}},
		"a schema without a table":              {inboxsql.Config{Table: "shop."}, []string{"Config.Table"}},
		"a table without its schema":            {inboxsql.Config{Table: ".inbox"}, []string{"Config.Table"}},
		"a schema of 61 letters":                {inboxsql.Config{Table: strings.Repeat("s", 61) + ".inbox"}, []string{"Config.Table"}},
		"a name of three parts":                 {inboxsql.Config{Table: "db.shop.inbox"}, []string{"Config.Table"}},
		"a namespace with a slash":              {inboxsql.Config{Namespace: "shop/eu"}, []string{"Config.Namespace", `"shop/eu"`}},
		"a namespace with a tilde":              {inboxsql.Config{Namespace: "~shop"}, []string{"Config.Namespace"}},
		"a namespace with letters beyond ASCII": {inboxsql.Config{Namespace: "köln"}, []string{"Config.Namespace"}},
		"a namespace with a line break":         {inboxsql.Config{Namespace: "shop\n"}, []string{"Config.Namespace"}},
		"a namespace of 65 letters":             {inboxsql.Config{Namespace: strings.Repeat("n", 65)}, []string{"Config.Namespace", "64"}},
		"transactions that only read":           {inboxsql.Config{TxOptions: &sql.TxOptions{ReadOnly: true}}, []string{"Config.TxOptions", "read-only"}},
		"two generations at a level that would double": {
			inboxsql.Config{Dialect: inboxsql.PostgresRotating, TxOptions: &sql.TxOptions{Isolation: sql.LevelRepeatableRead}},
			[]string{"Config.TxOptions", "Repeatable Read", "postgres_rotating", "Read Committed only", "processes their messages again"},
		},
		"a negative number of deliveries": {inboxsql.Config{Deliveries: -1}, []string{"Config.Deliveries", "-1"}},
		"a window that is shorter than redelivery takes": {
			inboxsql.Config{Window: 24 * time.Hour, MaxRedeliveryAge: 72 * time.Hour},
			[]string{"Config.Window is 24h0m0s", "72h0m0s", "Config.MaxRedeliveryAge", "processed twice"},
		},
		"a default window that is shorter than redelivery takes": {
			inboxsql.Config{MaxRedeliveryAge: 8 * 24 * time.Hour},
			[]string{"Config.Window is 168h0m0s", "192h0m0s"},
		},
		"a consumer's window that is shorter than redelivery takes": {
			inboxsql.Config{Windows: map[string]time.Duration{"invoices": time.Hour}, MaxRedeliveryAge: 72 * time.Hour},
			[]string{`Config.Windows["invoices"] is 1h0m0s`, "72h0m0s"},
		},
		"a window for a consumer without a name": {inboxsql.Config{Windows: map[string]time.Duration{"": time.Hour}}, []string{"Config.Windows", "without a name"}},
		"a negative age of redelivery":           {inboxsql.Config{MaxRedeliveryAge: -1}, []string{"Config.MaxRedeliveryAge", "-1ns"}},
		"a dialect that nobody speaks":           {inboxsql.Config{Dialect: "oracle"}, []string{"Config.Dialect", `"oracle"`, "inboxsql.Postgres"}},
		"everything that is wrong at once":       {inboxsql.Config{Table: ";", Namespace: ";", Deliveries: -1}, []string{"Config.Table", "Config.Namespace", "Config.Deliveries"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := inboxsql.New(db, &c.cfg)
			if s != nil {
				t.Error("got a store")
			}
			mustSay(t, err, append(c.says, "inboxsql: ")...)
		})
	}
}

func TestNewAccepts(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t, "")
	for name, cfg := range map[string]*inboxsql.Config{
		"no settings":                   nil,
		"the zero value":                {},
		"a table of 50 letters":         {Table: strings.Repeat("t", 50)},
		"a schema and a table":          {Table: strings.Repeat("s", 60) + "." + strings.Repeat("t", 50)},
		"a table that SQL would fold":   {Table: "_Inbox2"},
		"a reserved word as the table":  {Table: "select"},
		"a namespace of 64 letters":     {Namespace: strings.Repeat("n", 64)},
		"a namespace with punctuation":  {Namespace: "shop.eu_1-a"},
		"no waits":                      {Wait: -1, ConnTimeout: -1},
		"transactions with a level":     {TxOptions: &sql.TxOptions{Isolation: sql.LevelSerializable}},
		"a dialect that the driver has": {Dialect: inboxsql.SQLite},
		"two generations":               {Dialect: inboxsql.PostgresRotating},
		"two generations at the level that they have anyway": {
			Dialect: inboxsql.PostgresRotating, TxOptions: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
		},
		"two generations at whatever level is the default": {Dialect: inboxsql.PostgresRotating, TxOptions: &sql.TxOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := inboxsql.New(db, cfg); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNewRefusesNoDatabase(t *testing.T) {
	t.Parallel()
	_, err := inboxsql.New((*sql.DB)(nil), nil)
	mustSay(t, err, "nil")
	_, err = inboxsql.New((*sqlx.DB)(nil), nil)
	mustSay(t, err, "nil")
}

func TestNewAsksForTheDialectOfADriverThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	db, _ := openFaulty(t)
	_, err := inboxsql.New(db, nil)
	mustSay(t, err, "Config.Dialect", "inboxsql_test.faultyDriver", "wrapped")
	_, err = inboxsql.New(sqlx.NewDb(db, "traced"), nil)
	mustSay(t, err, "Config.Dialect")
	for _, cfg := range []*inboxsql.Config{{Dialect: inboxsql.SQLite}, {Dialect: inboxsql.Postgres}, {Dialect: inboxsql.PostgresRotating}, {Dialect: inboxsql.MySQL}} {
		if _, err := inboxsql.New(db, cfg); err != nil {
			t.Error(err)
		}
	}
}

func TestNewTakesBothKindsOfDatabase(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t, "")
	if err := inboxsql.MustNew(db, nil).CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	// All are one inbox, under whatever name the driver was opened.
	for i, s := range []*inboxsql.Store{
		inboxsql.MustNew(db, nil),
		inboxsql.MustNew(sqlx.NewDb(db, "sqlite"), nil),
		inboxsql.MustNew(sqlx.NewDb(db, "traced"), nil),
		inboxsql.MustNew(sqlx.NewDb(db, ""), nil),
	} {
		_, duplicate, err := s.Once(t.Context(), keyOf("1"), nothing)
		if err != nil || duplicate != (i > 0) {
			t.Errorf("store %d: got duplicate %v, error %v", i, duplicate, err)
		}
	}
}

func TestNewLeavesTheConfigAsItIs(t *testing.T) {
	t.Parallel()
	var cfg inboxsql.Config
	db := sqlitetest.Open(t, "")
	inboxsql.MustNew(db, &cfg)
	if !reflect.DeepEqual(cfg, inboxsql.Config{}) {
		t.Errorf("got %+v", cfg)
	}
	cfg.Wait = time.Nanosecond
	s := inboxsql.MustNew(db, &cfg)
	cfg.Table = "changed_later"
	if err := s.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := inboxsql.MustNew(db, nil).Once(t.Context(), keyOf("1"), nothing); err != nil {
		t.Errorf("the store has taken over a later change: %v", err)
	}
}

func TestMustNewPanicsWhereNewFails(t *testing.T) {
	t.Parallel()
	defer func() {
		err, _ := recover().(error)
		mustSay(t, err, "Config.Table")
	}()
	inboxsql.MustNew(sqlitetest.Open(t, ""), &inboxsql.Config{Table: ";"})
	t.Error("no panic")
}
