package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// readCONTRL reads a UN/EDIFACT interchange with one CONTRL message, of syntax
// version 3 or 4. A UNA segment before it sets other separators.
func readCONTRL(interchange []byte) (acknowledgement, error) {
	ack, err := readUCI(interchange)
	if err != nil {
		return acknowledgement{}, fmt.Errorf("CONTRL: %w", err)
	}
	return ack, nil
}

func readUCI(interchange []byte) (acknowledgement, error) {
	sep := separators{component: ':', element: '+', release: '?', terminator: '\''}
	if advice, ok := bytes.CutPrefix(interchange, []byte("UNA")); ok {
		if len(advice) < 6 {
			return acknowledgement{}, errTruncated
		}
		sep = separators{component: advice[0], element: advice[1], release: advice[3], terminator: advice[5]}
		if sep.release == ' ' {
			sep.release = 0
		}
		interchange = advice[6:]
	}
	segments, err := sep.split(interchange)
	if err != nil {
		return acknowledgement{}, err
	}
	unb, message, err := open(segments, "UNB", 5, "UNZ", 1)
	if err != nil {
		return acknowledgement{}, err
	}
	unh, body, err := open(message, "UNH", 1, "UNT", len(message))
	switch {
	case err != nil:
		return acknowledgement{}, err
	case unh.at(2, 0) != "CONTRL":
		return acknowledgement{}, errors.New("the message is of another type")
	case len(body) == 0 || body[0].tag() != "UCI" || body[0].at(1, 0) == "":
		return acknowledgement{}, errors.New("it has no UCI segment with a reference")
	}
	issued, err := clock(unb.at(4, 0), unb.at(4, 1))
	if err != nil {
		return acknowledgement{}, err
	}
	transition, err := actionTaken(body)
	if err != nil {
		return acknowledgement{}, err
	}
	reports := []string{body[0].report(4, 5)}
	for _, s := range body[1:] {
		if s.tag() == "UCM" {
			reports = append(reports, s.report(3, 4))
		}
	}
	return acknowledgement{kind: contrl, reference: body[0].at(1, 0), disposition: strings.Join(reports, ", "), transition: transition, issued: issued}, nil
}

// actionTaken reads the action codes (data element 0083) of the interchange and
// of its messages. Ours carry one order each, so that a rejected message is a
// rejected order.
func actionTaken(body []segment) (transition string, err error) {
	for _, s := range body[1:] {
		if s.tag() == "UCM" && s.at(3, 0) == "4" {
			return "rejected", nil
		}
	}
	switch body[0].at(4, 0) {
	case "4":
		return "rejected", nil
	case "7":
		return "accepted", nil
	case "8":
		return "received", nil
	}
	return "", errors.New("the action code of UCI is missing or unknown")
}
