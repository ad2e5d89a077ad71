package main

import (
	"strings"
	"testing"
)

const delivered = `Date: Mon, 05 Oct 2026 08:12:44 +0200
Message-ID: <20261005081244481.mdn@edi.nordhandel.example>
Content-Type: multipart/report; report-type=disposition-notification; boundary="b1"

--b1
Content-Type: text/plain

It was received.

--b1
Content-Type: message/disposition-notification

Reporting-UA: NordEDI AS2 4.1
Original-Message-ID: <000481@as2.acme-supply.example>
Disposition: automatic-action/MDN-sent-automatically; processed

--b1--
`

func TestReadMDN(t *testing.T) {
	t.Parallel()

	disposed := func(as string) string { return strings.Replace(delivered, "; processed\n", "; "+as+"\n", 1) }
	for name, c := range map[string]struct{ text, disposition, transition string }{
		"delivered":    {delivered, "processed", "delivered"},
		"with CR LF":   {strings.ReplaceAll(delivered, "\n", "\r\n"), "processed", "delivered"},
		"with warning": {disposed("processed/warning: duplicate-document"), "processed/warning: duplicate-document", "delivered with warning"},
		"with error":   {disposed("processed/error: decryption-failed"), "processed/error: decryption-failed", "delivered with error"},
		"case and blanks mean nothing": {
			disposed("Processed/Error:\n  Decryption-Failed"), "processed/error: decryption-failed", "delivered with error",
		},
		"not delivered":            {disposed("failed/Failure: unsupported format"), "failed/failure: unsupported format", "not delivered"},
		"no human-readable part":   {strings.Replace(delivered, "Content-Type: text/plain\n\nIt was received.\n\n--b1\n", "", 1), "processed", "delivered"},
		"made again by its sender": {strings.NewReplacer("481.mdn", "482.mdn", "b1", "b2").Replace(delivered), "processed", "delivered"},
		"in a multipart/signed": {
			"Date: Mon, 05 Oct 2026 08:12:44 +0200\nContent-Type: multipart/signed; boundary=outer\n\n--outer\n" +
				delivered[strings.Index(delivered, "Content-Type"):] + "\n--outer\nContent-Type: application/pkcs7-signature\n\nMIIB\n--outer--\n",
			"processed", "delivered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ack, err := readAcknowledgement([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if ack.kind != mdn || ack.reference != "<000481@as2.acme-supply.example>" || ack.disposition != c.disposition || ack.transition != c.transition {
				t.Errorf("got %+v", ack)
			}
			if got := ack.issued.Format("2006-01-02 15:04"); got != "2026-10-05 06:12" {
				t.Errorf("issued at %s", got)
			}
		})
	}
}

func TestReadMDNRefuses(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"nothing":                    "",
		"another kind of document":   "<?xml version=\"1.0\"?><Order/>",
		"no date":                    strings.Replace(delivered, "Date", "X-Date", 1),
		"no boundary":                strings.Replace(delivered, "; boundary=\"b1\"", "", 1),
		"no content type":            strings.Replace(delivered, "Content-Type: multipart", "X-Type: multipart", 1),
		"an ordinary mail":           "Date: Mon, 05 Oct 2026 08:12:44 +0200\nContent-Type: text/plain\n\nhello\n",
		"no notification":            strings.Replace(delivered, "message/disposition-notification", "text/plain", 1),
		"no original message id":     strings.Replace(delivered, "Original-Message-ID", "X-Message-ID", 1),
		"no disposition":             strings.Replace(delivered, "Disposition: ", "X-Disposition: ", 1),
		"an unknown disposition":     strings.Replace(delivered, "; processed\n", "; displayed\n", 1),
		"a disposition without type": strings.Replace(delivered, "; processed\n", "\n", 1),
		"malformed fields":           strings.Replace(delivered, "Reporting-UA:", "Reporting-UA", 1),
		"cut in the header":          delivered[:strings.Index(delivered, "boundary")],
		"cut in the report":          delivered[:strings.Index(delivered, "It was")],
		"cut in the notification":    delivered[:strings.Index(delivered, "; processed")+6],
		"cut before the last line":   delivered[:strings.LastIndex(delivered, "--b1--")],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ack, err := readAcknowledgement([]byte(text)); err == nil {
				t.Errorf("%q was read as %+v", text, ack)
			}
		})
	}
}
