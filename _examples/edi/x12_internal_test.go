package main

import (
	"strings"
	"testing"
)

const acceptedGroup = "ISA*00*          *00*          *ZZ*MIDWESTTOOLS   *ZZ*ACMESUPPLY     *261005*0731*U*00401*000005501*0*P*>~" +
	"GS*FA*MIDWESTTOOLS*ACMESUPPLY*20261005*0731*5501*X*004010~ST*997*0001~AK1*PO*481~AK2*850*0001~AK5*A~AK9*A*1*1*1~" +
	"SE*6*0001~GE*1*5501~IEA*1*000005501~"

func TestRead997(t *testing.T) {
	t.Parallel()

	code := func(ak5, ak9 string) string {
		return strings.NewReplacer("AK5*A", "AK5*"+ak5, "AK9*A", "AK9*"+ak9).Replace(acceptedGroup)
	}
	for name, c := range map[string]struct{ text, disposition, transition string }{
		"accepted":             {acceptedGroup, "AK5 A, AK9 A", "accepted"},
		"accepted with errors": {code("E*5", "E"), "AK5 E error 5, AK9 E", "accepted with errors"},
		"partially accepted":   {code("R*5", "P"), "AK5 R error 5, AK9 P", "partially accepted"},
		"rejected":             {code("R*5", "R"), "AK5 R error 5, AK9 R", "rejected"},
		"rejected for the group alone": {
			strings.NewReplacer("AK2*850*0001~AK5*A~AK9*A*1*1*1", "AK9*R*1*1*0*4", "SE*6", "SE*4").Replace(acceptedGroup), "AK9 R error 4", "rejected",
		},
		"line breaks after segments": {strings.ReplaceAll(acceptedGroup, "~", "~\r\n"), "AK5 A, AK9 A", "accepted"},
		"a line break for the end":   {strings.ReplaceAll(acceptedGroup, "~", "\n"), "AK5 A, AK9 A", "accepted"},
		"CR LF for the end":          {strings.ReplaceAll(acceptedGroup, "~", "\r\n"), "AK5 A, AK9 A", "accepted"},
		"other separators":           {strings.NewReplacer("*", "|", ">", "^", "~", "'").Replace(acceptedGroup), "AK5 A, AK9 A", "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ack, err := readAcknowledgement([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if ack.kind != x12997 || ack.reference != "481" || ack.disposition != c.disposition || ack.transition != c.transition {
				t.Errorf("got %+v", ack)
			}
			if got := ack.issued.Format("2006-01-02 15:04"); got != "2026-10-05 07:31" {
				t.Errorf("issued at %s", got)
			}
		})
	}
}

func TestRead997Refuses(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"another transaction set":        strings.Replace(acceptedGroup, "ST*997", "ST*999", 1),
		"no AK1":                         strings.NewReplacer("AK1*PO*481~", "", "SE*6", "SE*5").Replace(acceptedGroup),
		"AK1 without the group":          strings.Replace(acceptedGroup, "AK1*PO*481", "AK1*PO", 1),
		"no AK9":                         strings.NewReplacer("AK9*A*1*1*1~", "", "SE*6", "SE*5").Replace(acceptedGroup),
		"an unknown code":                strings.Replace(acceptedGroup, "AK9*A", "AK9*Q", 1),
		"a lost segment":                 strings.Replace(acceptedGroup, "AK2*850*0001~", "", 1),
		"no group trailer":               strings.Replace(acceptedGroup, "GE*1*5501~", "", 1),
		"the trailer of another group":   strings.Replace(acceptedGroup, "GE*1*5501", "GE*1*5502", 1),
		"two groups":                     strings.Replace(acceptedGroup, "IEA*1", "IEA*2", 1),
		"a malformed date":               strings.Replace(acceptedGroup, "*0731*U", "*2531*U", 1),
		"an ISA that is a blank shorter": strings.Replace(acceptedGroup, "MIDWESTTOOLS   *", "MIDWESTTOOLS  *", 1),
		"only ISA":                       acceptedGroup[:106],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ack, err := readAcknowledgement([]byte(text)); err == nil {
				t.Errorf("%q was read as %+v", text, ack)
			}
		})
	}
}
