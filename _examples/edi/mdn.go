package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
)

var errNoNotification = errors.New("there is no message/disposition-notification part")

// readMDN reads an AS2 message disposition notification, a multipart/report by
// RFC 4130 and RFC 3798. A signature around it is the gateway's to verify, before.
func readMDN(document []byte) (acknowledgement, error) {
	msg, err := mail.ReadMessage(bytes.NewReader(document))
	if err != nil {
		return acknowledgement{}, errors.New("MDN: its header cannot be read")
	}
	issued, err := msg.Header.Date()
	if err != nil {
		return acknowledgement{}, errors.New("MDN: its Date is missing or malformed")
	}
	fields, err := notification(textproto.MIMEHeader(msg.Header), msg.Body)
	if err != nil {
		return acknowledgement{}, fmt.Errorf("MDN: %w", err)
	}
	reference := fields.Get("Original-Message-ID")
	if reference == "" {
		return acknowledgement{}, errors.New("MDN: it has no Original-Message-ID")
	}
	disposition, transition, err := readDisposition(fields.Get("Disposition"))
	if err != nil {
		return acknowledgement{}, fmt.Errorf("MDN: %w", err)
	}
	return acknowledgement{kind: mdn, reference: reference, disposition: disposition, transition: transition, issued: issued.UTC()}, nil
}

// notification finds the machine-readable part, however deep it is: a signed MDN
// is a multipart/report within a multipart/signed.
func notification(header textproto.MIMEHeader, body io.Reader) (textproto.MIMEHeader, error) {
	mediaType, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case err != nil:
		return nil, errNoNotification
	case mediaType == "message/disposition-notification":
		// The blank line at its end belongs to the boundary, so that it ends with EOF.
		fields, err := textproto.NewReader(bufio.NewReader(body)).ReadMIMEHeader()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errTruncated
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.New("the fields of its notification cannot be read")
		}
		return fields, nil
	case !strings.HasPrefix(mediaType, "multipart/"):
		return nil, errNoNotification
	}
	parts := multipart.NewReader(body, params["boundary"])
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, errNoNotification
		}
		if err != nil {
			return nil, errTruncated
		}
		fields, err := notification(part.Header, part)
		if errors.Is(err, errNoNotification) {
			continue
		}
		return fields, err
	}
}

// readDisposition reads "mode; type[/modifier[: detail]]", where case and blanks
// mean nothing: two spellings of one disposition are one event.
func readDisposition(field string) (disposition, transition string, err error) {
	_, outcome, _ := strings.Cut(strings.ToLower(field), ";")
	outcome, detail, _ := strings.Cut(outcome, ":")
	outcome = strings.Join(strings.Fields(outcome), "")
	detail = strings.Join(strings.Fields(detail), " ")
	switch outcome {
	case "processed":
		transition = "delivered"
	case "processed/warning":
		transition = "delivered with warning"
	case "processed/error", "processed/failure":
		transition = "delivered with error"
	case "failed", "failed/failure", "failed/error":
		transition = "not delivered"
	default:
		return "", "", errors.New("its Disposition is missing or unknown")
	}
	if detail != "" {
		outcome += ": " + detail
	}
	return outcome, transition, nil
}
