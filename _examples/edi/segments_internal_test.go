package main

import (
	"errors"
	"reflect"
	"testing"
)

func TestSplit(t *testing.T) {
	t.Parallel()

	edifact := separators{component: ':', element: '+', release: '?', terminator: '\''}
	x12 := separators{component: '>', element: '*', terminator: '~'}
	for name, c := range map[string]struct {
		sep  separators
		text string
		want []segment
		err  error
	}{
		"elements and components":               {edifact, "A+1:2+3'B'", []segment{{{"A"}, {"1", "2"}, {"3"}}, {{"B"}}}, nil},
		"empty elements and components stay":    {edifact, "A++:x+'", []segment{{{"A"}, {""}, {"", "x"}, {""}}}, nil},
		"a released separator is text":          {edifact, "A+1?+1?:2??'", []segment{{{"A"}, {"1+1:2?"}}}, nil},
		"a released terminator is text":         {edifact, "A+it?'s'", []segment{{{"A"}, {"it's"}}}, nil},
		"X12 releases nothing":                  {x12, "A*what?~B~", []segment{{{"A"}, {"what?"}}, {{"B"}}}, nil},
		"line breaks between segments are none": {x12, "A*1~\r\nB*2~\r\n\r\n", []segment{{{"A"}, {"1"}}, {{"B"}, {"2"}}}, nil},
		"a line break within an element is text": {
			edifact, "A+1\n2'", []segment{{{"A"}, {"1\n2"}}}, nil,
		},
		"a line break may be the terminator": {
			separators{component: '>', element: '*', terminator: '\n'}, "A*1\nB*2\n\n", []segment{{{"A"}, {"1"}}, {{"B"}, {"2"}}}, nil,
		},
		"a terminator without a segment is skipped": {x12, "~A~~", []segment{{{"A"}}}, nil},
		"nothing is no segment":                     {x12, "", nil, nil},
		"an open segment is truncated":              {edifact, "A+1'B+2", nil, errTruncated},
		"an open component is truncated":            {edifact, "A+1'B:", nil, errTruncated},
		"a release with nothing behind it":          {edifact, "A+1?", nil, errTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.sep.split([]byte(c.text))
			if !errors.Is(err, c.err) || !reflect.DeepEqual(got, c.want) {
				t.Errorf("split(%q) = %q, %v; want %q, %v", c.text, got, err, c.want, c.err)
			}
		})
	}
}

func TestSegmentAtIsEmptyBeyondItsEnd(t *testing.T) {
	t.Parallel()

	s := segment{{"UCI"}, {"481"}}
	for _, place := range [][2]int{{1, 1}, {2, 0}, {9, 9}} {
		if got := s.at(place[0], place[1]); got != "" {
			t.Errorf("at(%d, %d) = %q", place[0], place[1], got)
		}
	}
}
