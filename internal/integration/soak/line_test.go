package soak_test

import (
	"context"
	"errors"
	"net"
)

// The troubles of a line to a server.
const (
	cutBefore = "line cut before a request"
	cutAfter  = "line cut after a request, before its answer"
	cutAnswer = "line cut in place of an answer"
	refused   = "connection refused"
)

var errCut = errors.New("the line is cut")

// line is a connection that breaks by chance.
type line struct {
	net.Conn
	chance *chance
}

// dialer returns a function that connects over such lines.
func dialer(c *chance) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.in(50, refused) {
			return nil, errCut
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &line{Conn: conn, chance: c}, nil
	}
}

func (l *line) Write(b []byte) (int, error) {
	if l.chance.in(2000, cutBefore) {
		return 0, errors.Join(errCut, l.Close())
	}
	n, err := l.Conn.Write(b)
	if err == nil && l.chance.in(1000, cutAfter) {
		return n, l.Close()
	}
	return n, err
}

func (l *line) Read(b []byte) (int, error) {
	if l.chance.in(4000, cutAnswer) {
		return 0, errors.Join(errCut, l.Close())
	}
	return l.Conn.Read(b)
}
