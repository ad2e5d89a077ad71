package inboxsql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

func TestMissingTableIsAnErrorThatSaysHowToGetIt(t *testing.T) {
	t.Parallel()
	s := inboxsql.MustNew(sqlitetest.OpenMemory(t), &inboxsql.Config{Table: "orders_inbox"})
	_, duplicate, err := s.Once(t.Context(), keyOf("1"), mustNotRun(t))
	mustBeAt(t, err, inbox.OpConnect)
	if duplicate || !errors.Is(err, inbox.ErrNoTable) || inbox.Permanent(err) {
		t.Errorf("got duplicate %v, error %v, want %q", duplicate, err, inbox.ErrNoTable)
	}
	mustSay(t, err, "orders_inbox", `inboxsql.Schema("sqlite", "orders_inbox")`, "CreateTable", "SetMaxOpenConns(1)")

	// It is looked for with each delivery until it is there.
	if err := s.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Once(t.Context(), keyOf("1"), nothing); err != nil {
		t.Error(err)
	}
}

const sqliteColumns = `consumer TEXT NOT NULL, source TEXT NOT NULL, message_id TEXT NOT NULL, event_type TEXT, received_at TEXT NOT NULL,
	processed_at TEXT NOT NULL, outcome TEXT, result BLOB, produced BLOB, fingerprint BLOB, PRIMARY KEY (consumer, source, message_id)`

func TestWrongTableIsRefused(t *testing.T) {
	t.Parallel()
	key := "primary key (consumer, source, message_id)"
	for name, c := range map[string]struct {
		replace [][2]string // in sqliteColumns
		says    []string
	}{
		"an id that is a number":           {[][2]string{{"message_id TEXT", "message_id INTEGER"}}, []string{"column message_id", "INTEGER", "TEXT"}},
		"an id without a type":             {[][2]string{{"message_id TEXT", "message_id"}}, []string{"column message_id", "TEXT"}},
		"a consumer that is a blob":        {[][2]string{{"consumer TEXT", "consumer BLOB"}}, []string{"column consumer", "BLOB", "TEXT"}},
		"an id without case":               {[][2]string{{"message_id TEXT", "message_id TEXT COLLATE NOCASE"}}, []string{"column message_id", "merges", "BINARY"}},
		"a source without trailing blanks": {[][2]string{{"source TEXT", "source TEXT COLLATE RTRIM"}}, []string{"column source", "merges", "BINARY"}},
		"a primary key without case":       {[][2]string{{"message_id)", "message_id COLLATE NOCASE)"}}, []string{"column message_id", "merges", "BINARY"}},
		"a unique constraint instead of a primary key": {
			[][2]string{{"message_id TEXT", "message_id TEXT COLLATE NOCASE"}, {"PRIMARY KEY", "UNIQUE"}}, []string{key},
		},
		"a primary key in another order":     {[][2]string{{"(consumer, source, message_id)", "(source, consumer, message_id)"}}, []string{key}},
		"no primary key":                     {[][2]string{{", PRIMARY KEY (consumer, source, message_id)", ""}}, []string{key}},
		"a primary key of the id alone":      {[][2]string{{"(consumer, source, message_id)", "(message_id)"}}, []string{key}},
		"a primary key with one column more": {[][2]string{{"message_id)", "message_id, event_type)"}}, []string{key}},
		"a table without the fingerprint":    {[][2]string{{", fingerprint BLOB", ""}}, []string{"column fingerprint is missing", "inboxsql.Schema"}},
		"a table without two columns":        {[][2]string{{", outcome TEXT, result BLOB", ""}}, []string{"column outcome is missing", "column result is missing"}},
	} {
		t.Run("such as "+name, func(t *testing.T) {
			t.Parallel()
			db := sqlitetest.OpenMemory(t)
			columns := sqliteColumns
			for _, r := range c.replace {
				columns = strings.Replace(columns, r[0], r[1], 1)
			}
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE inbox_messages ("+columns+")"); err != nil {
				t.Fatal(err)
			}
			s := inboxsql.MustNew(db, nil)
			_, _, err := s.Once(t.Context(), keyOf("1"), mustNotRun(t))
			mustBeAt(t, err, inbox.OpConnect)
			if !errors.Is(err, inbox.ErrNoTable) {
				t.Errorf("got %v, want %q", err, inbox.ErrNoTable)
			}
			mustSay(t, err, append(c.says, "table inbox_messages")...)
			findings, err := s.Check(t.Context())
			if err != nil || len(findings) == 0 || !findings[0].Fatal {
				t.Fatalf("the check found %v, %v, want a fatal flaw first", findings, err)
			}
			mustSay(t, errors.New(findings[0].Problem), c.says...)
		})
	}
}

func TestTableOfOthersMakingIsAcceptedIfItKeepsIDsApart(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string]string{
		"with a primary key, with row ids": sqliteColumns,
		"with a column of one's own":       "tenant TEXT, " + sqliteColumns,
		"with its columns in another order": strings.Replace(strings.Replace(sqliteColumns, ", event_type TEXT", "", 1),
			"consumer TEXT", "event_type TEXT, consumer TEXT", 1),
		"with types in small letters": strings.ReplaceAll(sqliteColumns, "TEXT", "text"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqlitetest.OpenMemory(t)
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE inbox_messages ("+columns+")"); err != nil {
				t.Fatal(err)
			}
			newShop(t, db, nil).mustProcess(t)
		})
	}
}

func TestLongestIDsAreKeptApart(t *testing.T) {
	t.Parallel()
	s := openShop(t, nil)
	longest := inbox.Key{
		Consumer:  strings.Repeat("c", inbox.MaxConsumer),
		Source:    strings.Repeat("s", inbox.MaxSource),
		MessageID: strings.Repeat("é", inbox.MaxMessageID/2),
	}
	for name, k := range map[string]inbox.Key{
		"the longest":                      longest,
		"another last letter, consumer":    {Consumer: longest.Consumer[:254] + "x", Source: longest.Source, MessageID: longest.MessageID},
		"another last letter, source":      {Consumer: longest.Consumer, Source: longest.Source[:254] + "x", MessageID: longest.MessageID},
		"another last letter, message id":  {Consumer: longest.Consumer, Source: longest.Source, MessageID: longest.MessageID[:510] + "è"},
		"the last letter missing in an id": {Consumer: longest.Consumer, Source: longest.Source, MessageID: longest.MessageID[:510]},
	} {
		if e, duplicate, err := s.store.Once(t.Context(), inbox.Delivery{Key: k}, nothing); err != nil || duplicate || e.Key != k {
			t.Errorf("%s: got %+v, duplicate %v, error %v", name, e, duplicate, err)
		}
	}
	if e, duplicate, err := s.store.Once(t.Context(), inbox.Delivery{Key: longest}, mustNotRun(t)); err != nil || !duplicate || e.Key != longest {
		t.Errorf("got %+v, duplicate %v, error %v", e, duplicate, err)
	}
}

func TestConsumerMustFitWithItsNamespace(t *testing.T) {
	t.Parallel()
	s := openShop(t, &inboxsql.Config{Namespace: "shop"})
	const taken = len("~shop/")
	for most, want := range map[int]bool{inbox.MaxConsumer - taken: true, inbox.MaxConsumer - taken + 1: false} {
		k := inbox.Key{Consumer: strings.Repeat("c", most), MessageID: "1"}
		_, _, err := s.store.Once(t.Context(), inbox.Delivery{Key: k}, nothing)
		if (err == nil) != want {
			t.Errorf("a consumer of %d bytes: %v", most, err)
		}
		if err != nil && !errors.Is(err, inbox.ErrInvalidKey) {
			t.Errorf("got %v, want an error that is %q", err, inbox.ErrInvalidKey)
		}
	}
}
