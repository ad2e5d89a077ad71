package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// separators divide an interchange of EDIFACT or X12. A release character takes
// the meaning from the one behind it; 0 if there is none.
type separators struct{ component, element, release, terminator byte }

// segment is a line of an interchange: elements, the first of them its tag, each
// of one or more components.
type segment [][]string

// at is the component of an element, both counted from zero, or "".
func (s segment) at(element, component int) string {
	if element >= len(s) || component >= len(s[element]) {
		return ""
	}
	return s[element][component]
}

func (s segment) tag() string { return s.at(0, 0) }

// report says what a segment reports: its code, and the error if there is one.
func (s segment) report(code, fault int) string {
	text := s.tag() + " " + s.at(code, 0)
	if e := s.at(fault, 0); e != "" {
		text += " error " + e
	}
	return text
}

// split divides an interchange into segments. Line breaks between them, which
// many partners add, are not theirs.
func (sep separators) split(interchange []byte) ([]segment, error) {
	var (
		all  []segment
		s    segment
		e    []string
		text []byte
	)
	endElement := func() {
		s = append(s, append(e, string(text)))
		e, text = nil, text[:0]
	}
	for i := 0; i < len(interchange); i++ {
		switch c := interchange[i]; {
		case sep.release != 0 && c == sep.release:
			if i++; i == len(interchange) {
				return nil, errTruncated
			}
			text = append(text, interchange[i])
		case c == sep.terminator:
			if endElement(); len(s) > 1 || s.tag() != "" {
				all = append(all, s)
			}
			s = nil
		case c == sep.element:
			endElement()
		case c == sep.component:
			e = append(e, string(text))
			text = text[:0]
		case (c == '\r' || c == '\n') && len(s)+len(e)+len(text) == 0:
		default:
			text = append(text, c)
		}
	}
	if len(s)+len(e)+len(text) > 0 {
		return nil, errTruncated
	}
	return all, nil
}

// open takes header and trailer off the segments of an envelope. The reference
// in both is the same, and the trailer counts what is inside: a document that is
// cut, or put together from two, shows there.
func open(segments []segment, head string, reference int, trailer string, count int) (header segment, inside []segment, err error) {
	last := len(segments) - 1
	if last < 1 || segments[0].tag() != head || segments[last].tag() != trailer {
		return nil, nil, fmt.Errorf("%w: it is not enclosed by %s and %s", errTruncated, head, trailer)
	}
	header = segments[0]
	if header.at(reference, 0) == "" || header.at(reference, 0) != segments[last].at(2, 0) {
		return nil, nil, fmt.Errorf("%s and %s differ in their reference", head, trailer)
	}
	if n, err := strconv.Atoi(segments[last].at(1, 0)); err != nil || n != count {
		return nil, nil, fmt.Errorf("%s does not count %d", trailer, count)
	}
	return header, segments[1:last], nil
}

// clock reads date and time of an interchange header; the century is optional.
// They have no zone, and are taken for UTC.
func clock(date, hours string) (time.Time, error) {
	layout := "060102 1504"
	if len(date) == 8 {
		layout = "20060102 1504"
	}
	t, err := time.Parse(layout, date+" "+hours)
	if err != nil {
		return time.Time{}, errors.New("its date and time are malformed")
	}
	return t, nil
}
