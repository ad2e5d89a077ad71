package inbox_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/watermill-inbox/inbox"
)

func TestKeyValidateAcceptsWhatEachDatabaseKeepsApart(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]inbox.Key{
		"without a source":                     {Consumer: "invoices", MessageID: "order-1"},
		"with a source":                        {Consumer: "invoices", Source: "shop", MessageID: "order-1"},
		"with parts of the most bytes":         {Consumer: strings.Repeat("c", 255), Source: strings.Repeat("s", 255), MessageID: strings.Repeat("m", 512)},
		"with letters that take several bytes": {Consumer: "Rechnungen-für-Köln", MessageID: strings.Repeat("é", 256)},
		"with blanks, quotes and line breaks":  {Consumer: " ", Source: "\t", MessageID: "a'b\"c\n\x7f"},
		"with U+FFFD, which is valid UTF-8":    {Consumer: "invoices", MessageID: "\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := k.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeyValidateRefusesAndNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  inbox.Key
		says []string
	}{
		"an empty consumer":                                       {inbox.Key{MessageID: "1"}, []string{"consumer is empty", "router", "name the consumer"}},
		"an empty message id":                                     {inbox.Key{Consumer: "c"}, []string{"message id is empty", "producer", "Metadata", "PayloadHash"}},
		"a key of nothing":                                        {inbox.Key{}, []string{"consumer is empty"}},
		"a source alone":                                          {inbox.Key{Source: "s"}, []string{"consumer is empty"}},
		"a consumer of one byte too many":                         {inbox.Key{Consumer: strings.Repeat("c", 256), MessageID: "1"}, []string{"consumer has 256 bytes", "255", "Consumer"}},
		"a source of one byte too many":                           {inbox.Key{Consumer: "c", Source: strings.Repeat("s", 256), MessageID: "1"}, []string{"source has 256 bytes", "255", "Hashed"}},
		"a message id of one byte too many":                       {inbox.Key{Consumer: "c", MessageID: strings.Repeat("m", 513)}, []string{"message id has 513 bytes", "512", "Hashed"}},
		"an id of too many bytes, though not of too many letters": {inbox.Key{Consumer: "c", MessageID: strings.Repeat("é", 257)}, []string{"message id has 514 bytes"}},
		"a consumer that is not UTF-8":                            {inbox.Key{Consumer: "\xff", MessageID: "1"}, []string{"consumer is not valid UTF-8", "Consumer"}},
		"a source that is not UTF-8":                              {inbox.Key{Consumer: "c", Source: "\xc3", MessageID: "1"}, []string{"source is not valid UTF-8", "Hashed"}},
		"a message id that is not UTF-8":                          {inbox.Key{Consumer: "c", MessageID: "\xed\xa0\x80"}, []string{"message id is not valid UTF-8", "Hashed"}},
		"a consumer with NUL":                                     {inbox.Key{Consumer: "a\x00b", MessageID: "1"}, []string{"consumer", "NUL", "Consumer"}},
		"a source with NUL":                                       {inbox.Key{Consumer: "c", Source: "\x00", MessageID: "1"}, []string{"source", "NUL", "Hashed"}},
		"a message id with NUL":                                   {inbox.Key{Consumer: "c", MessageID: "1\x00"}, []string{"message id", "NUL", "Hashed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.key.Validate()
			if !errors.Is(err, inbox.ErrInvalidKey) || inbox.Permanent(err) == strings.HasPrefix(c.says[0], "consumer") {
				t.Fatalf("got %v, permanent %v", err, inbox.Permanent(err))
			}
			if e := (*inbox.KeyError)(nil); !errors.As(err, &e) || e.Key != c.key || e.Err != nil {
				t.Errorf("got %#v, want a KeyError with the key", err)
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q does not say %q", err, text)
				}
			}
		})
	}
}

func TestKeyString(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  inbox.Key
		want string
	}{
		"leaves out an empty source":               {inbox.Key{Consumer: "invoices", MessageID: "order-1"}, "invoices/order-1"},
		"has the source in the middle":             {inbox.Key{Consumer: "invoices", Source: "shop", MessageID: "order-1"}, "invoices/shop/order-1"},
		"shows that a part is empty":               {inbox.Key{}, `""/""`},
		"leaves letters of any script as they are": {inbox.Key{Consumer: "Köln", MessageID: "注文-1"}, "Köln/注文-1"},
		"quotes a blank":                           {inbox.Key{Consumer: "c", MessageID: "order 1"}, `c/"order 1"`},
		"quotes a quote":                           {inbox.Key{Consumer: "c", MessageID: `a"b`}, `c/"a\"b"`},
		"quotes a line break":                      {inbox.Key{Consumer: "c", Source: "a\nb", MessageID: "1"}, `c/"a\nb"/1`},
		"quotes an escape sequence":                {inbox.Key{Consumer: "c", MessageID: "\x1b[2J"}, `c/"\x1b[2J"`},
		"quotes a control character of one byte":   {inbox.Key{Consumer: "c", MessageID: "a\x7f"}, `c/"a\x7f"`},
		"quotes a control character of two bytes":  {inbox.Key{Consumer: "c", MessageID: "\u009b2J"}, `c/"\u009b2J"`},
		"quotes a mark that turns the line":        {inbox.Key{Consumer: "c", MessageID: "\u202e1"}, `c/"\u202e1"`},
		"quotes what is not UTF-8":                 {inbox.Key{Consumer: "c", MessageID: "\xff"}, `c/"\xff"`},
		"keeps an id of 128 bytes":                 {inbox.Key{Consumer: "c", MessageID: strings.Repeat("m", 128)}, "c/" + strings.Repeat("m", 128)},
		"cuts a longer one":                        {inbox.Key{Consumer: "c", MessageID: strings.Repeat("m", 129)}, "c/" + strings.Repeat("m", 128) + "…"},
		"cuts a long quoted one":                   {inbox.Key{Consumer: "c", MessageID: " " + strings.Repeat("m", 512)}, `c/" ` + strings.Repeat("m", 127) + `"…`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.key.String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// FuzzKeyValidate checks Validate against what the databases can hold, and that
// a key of any bytes is one readable line in a log.
func FuzzKeyValidate(f *testing.F) {
	f.Add("invoices", "", "order-1")
	f.Add("invoices", "shop", "order-1")
	f.Add("", "", "")
	f.Add("\x00", "\xff", "\u009b")
	f.Add("é", "\u2028", "\u202e")
	f.Add(strings.Repeat("c", 255), strings.Repeat("s", 256), strings.Repeat("é", 256))
	f.Add("c", "", strings.Repeat("m", 127)+"é")
	f.Fuzz(func(t *testing.T, consumer, source, messageID string) {
		k := inbox.Key{Consumer: consumer, Source: source, MessageID: messageID}
		err := k.Validate()
		if fit := consumer != "" && messageID != "" && holds(consumer, 255) && holds(source, 255) && holds(messageID, 512); fit != (err == nil) {
			t.Errorf("%q: got %v", k, err)
		}
		if err != nil && !errors.Is(err, inbox.ErrInvalidKey) {
			t.Errorf("%q: got %v, want an error that is %q", k, err, inbox.ErrInvalidKey)
		}
		line := k.String()
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q has control characters, or is not UTF-8", line)
		}
		// A byte takes up to four of a quoted part, and a part has up to 128.
		if most := 3*(4*128+len(`""…`)) + 2; len(line) > most {
			t.Errorf("%q has %d bytes, more than %d", line, len(line), most)
		}
	})
}

func holds(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}
