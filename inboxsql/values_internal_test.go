package inboxsql

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		most int
		want string
	}{
		"nothing":                           {"", 4, ""},
		"what fits":                         {"abcd", 4, "abcd"},
		"what is too long":                  {"abcde", 4, "abcd"},
		"a letter that ends with the limit": {"abé", 4, "abé"},
		"a letter that crosses the limit":   {"abcé", 4, "abc"},
		"a letter of four bytes":            {"a😀", 4, "a"},
		"what is not UTF-8":                 {"a\xffb", 9, "a\ufffdb"},
		"NUL":                               {"a\x00b", 9, "a\ufffdb"},
		"what is longer once it is valid":   {"\x00\x00", 4, "\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cut(c.in, c.most); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzCut(f *testing.F) {
	f.Add("OrderPlaced", 4)
	f.Add("😀\x00\xff", 5)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 0 {
			t.Skip("no column has a negative width")
		}
		got := cut(s, most)
		if len(got) > most || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("cut(%q, %d) is %q", s, most, got)
		}
	})
}

func TestColumnValues(t *testing.T) {
	t.Parallel()
	if got := text(""); got != nil {
		t.Errorf("an empty text is %#v, want NULL", got)
	}
	if got := text("a"); got != "a" {
		t.Errorf("got %#v", got)
	}
	if got := blob(nil); got != nil {
		t.Errorf("no bytes are %#v, want NULL", got)
	}
	if got, ok := blob([]byte{}).([]byte); !ok || got == nil {
		t.Errorf("empty bytes are %#v, want no NULL", got)
	}
	if got, ok := blob([]byte("a")).([]byte); !ok || !bytes.Equal(got, []byte("a")) {
		t.Errorf("got %#v", got)
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                     "",
		"too old":              "discarded: too old",
		"discarded: by a test": "discarded: discarded: by a test",
	} {
		if got := outcome(in); got != want {
			t.Errorf("outcome(%q) is %q, want %q", in, got, want)
		}
		if got := reason(outcome(in)); got != in {
			t.Errorf("the reason %q comes back as %q", in, got)
		}
	}
}

// Tables hold these names: another form of one would forget its keys.
func TestNamesInNamespacesAreFrozen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ namespace, consumer, want string }{
		{"", "invoices", "invoices"},
		{"", "shop/invoices", "shop/invoices"},
		{"", "~invoices", "~/~invoices"},
		{"", "~/invoices", "~/~/invoices"},
		{"", "~shop/invoices", "~/~shop/invoices"},
		{"shop", "invoices", "~shop/invoices"},
		{"shop", "~invoices", "~shop/~invoices"},
		{"shop", "eu/invoices", "~shop/eu/invoices"},
		{"shop.eu-1_a", "invoices", "~shop.eu-1_a/invoices"},
	} {
		if got := inNamespace(c.namespace, c.consumer); got != c.want {
			t.Errorf("inNamespace(%q, %q) is %q, want %q", c.namespace, c.consumer, got, c.want)
		}
	}
}

// FuzzNamespace checks that no two pairs of namespace and consumer meet: both
// can be read back from the name.
func FuzzNamespace(f *testing.F) {
	f.Add("", "invoices")
	f.Add("", "~shop/invoices")
	f.Add("", "~/invoices")
	f.Add("shop", "~/invoices")
	f.Add("shop", "/invoices")
	f.Fuzz(func(t *testing.T, namespace, consumer string) {
		if !namespaceName.MatchString(namespace) {
			t.Skip("Config refuses it")
		}
		name := inNamespace(namespace, consumer)
		gotNamespace, gotConsumer := "", name
		if rest, ok := strings.CutPrefix(name, "~"); ok {
			gotNamespace, gotConsumer, ok = strings.Cut(rest, "/")
			if !ok {
				t.Fatalf("%q has a namespace without an end", name)
			}
		}
		if gotNamespace != namespace || gotConsumer != consumer {
			t.Errorf("inNamespace(%q, %q) is %q, which reads as %q, %q", namespace, consumer, name, gotNamespace, gotConsumer)
		}
	})
}
