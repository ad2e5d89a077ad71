package main

import (
	"strings"
	"testing"
)

const accepted = "UNB+UNOC:3+P:14+U:14+261005:0620+7731'UNH+1+CONTRL:D:3:UN'UCI+481+U:14+P:14+7'UNT+3+1'UNZ+1+7731'"

func TestReadCONTRL(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ text, reference, disposition, transition string }{
		"accepted": {accepted, "481", "UCI 7", "accepted"},
		"received": {strings.Replace(accepted, "+7'UNT", "+8'UNT", 1), "481", "UCI 8", "received"},
		"rejected with an error": {
			strings.Replace(accepted, "+7'UNT", "+4+23+UNB'UNT", 1), "481", "UCI 4 error 23", "rejected",
		},
		"a rejected message rejects the order": {
			strings.NewReplacer("UNT+3", "UCM+1+ORDERS:D:01B:UN+4+13'UNT+4").Replace(accepted), "481", "UCI 7, UCM 4 error 13", "rejected",
		},
		"an accepted message": {
			strings.NewReplacer("UNT+3", "UCM+1+ORDERS:D:01B:UN+7'UNT+4").Replace(accepted), "481", "UCI 7, UCM 7", "accepted",
		},
		"syntax 4 has a century":      {strings.Replace(accepted, "261005", "20261005", 1), "481", "UCI 7", "accepted"},
		"the usual service string":    {"UNA:+.? '" + accepted, "481", "UCI 7", "accepted"},
		"line breaks and blanks":      {" \r\n" + strings.ReplaceAll(accepted, "'", "'\r\n"), "481", "UCI 7", "accepted"},
		"a released separator":        {strings.Replace(accepted, "UCI+481", "UCI+4?+8?'1", 1), "4+8'1", "UCI 7", "accepted"},
		"other separators":            {"UNA;|,!*~" + strings.NewReplacer(":", ";", "+", "|", "'", "~").Replace(accepted), "481", "UCI 7", "accepted"},
		"no release character at all": {"UNA:+.  '" + strings.Replace(accepted, "UCI+481", "UCI+48?", 1), "48?", "UCI 7", "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ack, err := readAcknowledgement([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if ack.kind != contrl || ack.reference != c.reference || ack.disposition != c.disposition || ack.transition != c.transition {
				t.Errorf("got %+v", ack)
			}
			if got := ack.issued.Format("2006-01-02 15:04"); got != "2026-10-05 06:20" {
				t.Errorf("issued at %s", got)
			}
		})
	}
}

func TestReadCONTRLRefuses(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"another message type":       strings.Replace(accepted, "CONTRL", "ORDERS", 1),
		"no UCI":                     strings.Replace(accepted, "UCI+481+U:14+P:14+7'UNT+3", "UNT+2", 1),
		"UCI without a reference":    strings.Replace(accepted, "UCI+481", "UCI+", 1),
		"an unknown action":          strings.Replace(accepted, "+7'UNT", "+5'UNT", 1),
		"no action":                  strings.Replace(accepted, "+7'UNT", "'UNT", 1),
		"no header":                  strings.Replace(accepted, "UNH+1+CONTRL:D:3:UN'", "", 1),
		"no trailer":                 strings.Replace(accepted, "UNZ+1+7731'", "", 1),
		"a lost segment":             strings.Replace(accepted, "UNT+3", "UNT+4", 1),
		"two messages":               strings.Replace(accepted, "UNZ+1", "UNZ+2", 1),
		"the trailer of another one": strings.Replace(accepted, "UNZ+1+7731", "UNZ+1+7732", 1),
		"no interchange reference":   strings.ReplaceAll(accepted, "7731", ""),
		"a malformed date":           strings.Replace(accepted, "261005", "261305", 1),
		"only a service string":      "UNA:+.? '",
		"half a service string":      "UNA:+",
		"two in one document":        accepted + accepted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ack, err := readAcknowledgement([]byte(text)); err == nil {
				t.Errorf("%q was read as %+v", text, ack)
			}
		})
	}
}
