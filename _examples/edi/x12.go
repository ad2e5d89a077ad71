package main

import (
	"errors"
	"fmt"
	"strings"
)

// read997 reads an X12 interchange with one functional acknowledgement.
func read997(interchange []byte) (acknowledgement, error) {
	ack, err := readAK9(interchange)
	if err != nil {
		return acknowledgement{}, fmt.Errorf("997: %w", err)
	}
	return ack, nil
}

func readAK9(interchange []byte) (acknowledgement, error) {
	// ISA has a fixed length, so that the separators stand at fixed places.
	const lengthISA = 106
	if len(interchange) < lengthISA {
		return acknowledgement{}, errTruncated
	}
	sep := separators{element: interchange[3], component: interchange[lengthISA-2], terminator: interchange[lengthISA-1]}
	segments, err := sep.split(interchange)
	if err != nil {
		return acknowledgement{}, err
	}
	isa, group, err := open(segments, "ISA", 13, "IEA", 1)
	if err != nil {
		return acknowledgement{}, err
	}
	_, set, err := open(group, "GS", 6, "GE", 1)
	if err != nil {
		return acknowledgement{}, err
	}
	st, body, err := open(set, "ST", 2, "SE", len(set))
	switch {
	case err != nil:
		return acknowledgement{}, err
	case st.at(1, 0) != "997":
		return acknowledgement{}, errors.New("the transaction set is another one")
	case len(body) == 0 || body[0].tag() != "AK1" || body[0].at(2, 0) == "":
		return acknowledgement{}, errors.New("it has no AK1 segment with a group control number")
	}
	issued, err := clock(isa.at(9, 0), isa.at(10, 0))
	if err != nil {
		return acknowledgement{}, err
	}
	transition, err := groupResponse(body[len(body)-1])
	if err != nil {
		return acknowledgement{}, err
	}
	var reports []string
	for _, s := range body {
		switch s.tag() {
		case "AK5":
			reports = append(reports, s.report(1, 2))
		case "AK9":
			reports = append(reports, s.report(1, 5))
		}
	}
	return acknowledgement{kind: x12997, reference: body[0].at(2, 0), disposition: strings.Join(reports, ", "), transition: transition, issued: issued}, nil
}

// groupResponse reads the acknowledgement code (data element 715) of AK9.
func groupResponse(s segment) (transition string, err error) {
	if s.tag() != "AK9" {
		return "", errors.New("it does not end with AK9")
	}
	switch s.at(1, 0) {
	case "A":
		return "accepted", nil
	case "E":
		return "accepted with errors", nil
	case "P":
		return "partially accepted", nil
	case "R", "M", "W", "X":
		return "rejected", nil
	}
	return "", errors.New("the code of AK9 is missing or unknown")
}
