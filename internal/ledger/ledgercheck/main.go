// Command ledgercheck says what is wrong with which message.
//
//	ledgercheck [-each n] sent effects outputs
//
// The files sent and effects have an id in each line; outputs has the id of the
// message that an output was produced for, a tab, and the UUID of the output. It
// exits with 1 if a message was lost or doubled, and with 2 if it could not look.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/watermill-inbox/inbox/internal/ledger"
)

func main() {
	each := flag.Int("each", 1, "how many outputs each message has")
	flag.Parse()
	ok, err := check(os.Stdout, flag.Args(), *each)
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "ledgercheck:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

func check(w io.Writer, names []string, each int) (ok bool, err error) {
	if len(names) != 3 {
		return false, errors.New("give it three files: sent, effects, outputs")
	}
	var files [3]*os.File
	for i, name := range names {
		if files[i], err = os.Open(name); err != nil { //nolint:gosec // the caller names the files
			return false, err
		}
		defer files[i].Close() //nolint:errcheck // only read
	}
	book, err := ledger.Read(files[0], files[1], files[2], each)
	if err != nil {
		return false, err
	}
	v := ledger.Check(book)
	return v.OK(), v.Print(w)
}
