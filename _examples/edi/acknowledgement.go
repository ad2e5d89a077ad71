package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// kind is the standard that an acknowledgement follows.
type kind string

const (
	mdn    kind = "MDN"    // RFC 4130: what became of an AS2 message
	contrl kind = "CONTRL" // UN/EDIFACT: what became of an interchange
	x12997 kind = "997"    // X12: what became of a functional group
)

// keyFields names the metadata fields for reference and disposition.
func (k kind) keyFields() (reference, dispositionHash string) {
	switch k {
	case mdn:
		return "as2_message_id", "mdn_disposition_hash"
	case contrl:
		return "interchange_reference", "contrl_disposition_hash"
	case x12997:
		return "group_control_number", "997_disposition_hash"
	}
	panic("edi: unknown kind " + string(k))
}

// key is what tells two events of one partner apart: the document of ours that is
// acknowledged, and what became of it. The UUID and the bytes differ when a partner
// makes the same acknowledgement again.
func (k kind) key() inboxmw.Part {
	reference, dispositionHash := k.keyFields()
	return inboxmw.Joined(inboxmw.Metadata(reference), inboxmw.Metadata(dispositionHash))
}

// acknowledgement is what a partner says of a document that we sent.
type acknowledgement struct {
	kind        kind
	reference   string    // of our document; unique for one partner only
	disposition string    // what became of it, in the words or codes of the standard
	transition  string    // the same for a person: delivered, rejected
	issued      time.Time // by the partner's clock, in UTC
}

var errTruncated = errors.New("the document is truncated")

// readAcknowledgement reads a document of any kind. No error quotes from it.
func readAcknowledgement(document []byte) (acknowledgement, error) {
	begin := bytes.TrimLeft(document, "\r\n ")
	switch {
	case bytes.HasPrefix(begin, []byte("UNA")), bytes.HasPrefix(begin, []byte("UNB")):
		return readCONTRL(begin)
	case bytes.HasPrefix(begin, []byte("ISA")):
		return read997(begin)
	default:
		return readMDN(begin)
	}
}

// dispositionHash gives a disposition of any length and alphabet a place in a key.
func (a acknowledgement) dispositionHash() string {
	sum := sha256.Sum256([]byte(a.disposition))
	return hex.EncodeToString(sum[:])
}
