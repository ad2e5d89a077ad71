package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/watermill-inbox/inbox/internal/ledger"
)

// right is a book in which all is as it should be: three messages with two outputs
// each, one of which came twice.
func right() ledger.Book {
	b := ledger.Book{Each: 2, Sent: []string{"1", "2", "3"}, Effects: []string{"3", "1", "2"}}
	for _, id := range b.Sent {
		b.Outputs = append(b.Outputs, ledger.Output{ID: id + "a", Of: id}, ledger.Output{ID: id + "b", Of: id})
	}
	b.Outputs = append(b.Outputs, ledger.Output{ID: "2b", Of: "2"})
	return b
}

func TestCheckFindsPlantedErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(b *ledger.Book)
		says  string
	}{
		"nothing": {func(*ledger.Book) {}, "0 lost, 0 doubled, 0 outputs lost, 0 unsent; 1 outputs repeated\n"},
		"an effect is missing": {
			func(b *ledger.Book) { b.Effects = b.Effects[1:] },
			"1 lost, 0 doubled, 0 outputs lost, 0 unsent; 1 outputs repeated\nlost: 3\n",
		},
		"an effect is there twice": {
			func(b *ledger.Book) { b.Effects = append(b.Effects, "1") },
			"0 lost, 1 doubled, 0 outputs lost, 0 unsent; 1 outputs repeated\ndoubled: 1\n",
		},
		"an output came under another UUID too": {
			func(b *ledger.Book) { b.Outputs = append(b.Outputs, ledger.Output{ID: "1c", Of: "1"}) },
			"0 lost, 1 doubled, 0 outputs lost, 0 unsent; 1 outputs repeated\ndoubled: 1\n",
		},
		"an output is missing": {
			func(b *ledger.Book) { b.Outputs = b.Outputs[1:] },
			"0 lost, 0 doubled, 1 outputs lost, 0 unsent; 1 outputs repeated\noutputs lost: 1\n",
		},
		"an output is missing, and another one came twice": {
			func(b *ledger.Book) { b.Outputs[0] = b.Outputs[1] },
			"0 lost, 0 doubled, 1 outputs lost, 0 unsent; 2 outputs repeated\noutputs lost: 1\n",
		},
		"an effect of a message that no one sent": {
			func(b *ledger.Book) { b.Effects = append(b.Effects, "4") },
			"0 lost, 0 doubled, 0 outputs lost, 1 unsent; 1 outputs repeated\nunsent: 4\n",
		},
		"an output of a message that no one sent": {
			func(b *ledger.Book) { b.Outputs = append(b.Outputs, ledger.Output{ID: "x", Of: "5"}) },
			"0 lost, 0 doubled, 0 outputs lost, 1 unsent; 1 outputs repeated\nunsent: 5\n",
		},
		"nothing came of many": {
			func(b *ledger.Book) {
				for i := range 20 {
					b.Sent = append(b.Sent, fmt.Sprintf("m%02d", i))
				}
			},
			"20 lost, 0 doubled, 20 outputs lost, 0 unsent; 1 outputs repeated\n" +
				"lost: m00 m01 m02 m03 m04 m05 m06 m07 m08 m09 …\noutputs lost: m00 m01 m02 m03 m04 m05 m06 m07 m08 m09 …\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := right()
			c.plant(&b)
			v := ledger.Check(b)
			var said strings.Builder
			if err := v.Print(&said); err != nil {
				t.Fatal(err)
			}
			if said.String() != c.says {
				t.Errorf("got\n%swant\n%s", said.String(), c.says)
			}
			if v.OK() != strings.HasPrefix(c.says, "0 lost, 0 doubled, 0 outputs lost, 0 unsent") {
				t.Errorf("OK is %t", v.OK())
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	b, err := ledger.Read(strings.NewReader("1\n2\n\n3\n"), strings.NewReader("3\n1\n2"), strings.NewReader("1\t1a\n1\t1b\n2\t2a\n2\t2b\n3\t3a\n3\t3b\n2\t2b\n"), 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := right(); !slices.Equal(b.Sent, want.Sent) || !slices.Equal(b.Effects, want.Effects) || !slices.Equal(b.Outputs, want.Outputs) || b.Each != 2 {
		t.Errorf("got %v", b)
	}
	_, err = ledger.Read(strings.NewReader(""), strings.NewReader(""), strings.NewReader("1\ta\n2 b\n"), 1)
	if err == nil || !strings.Contains(err.Error(), `outputs, line 2: "2 b"`) {
		t.Errorf("got %v", err)
	}
}
