package brokers_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// door is an address that stays while the server behind it goes away and comes
// back: a port that a server has given up may be someone else's by then.
type door struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	target string // empty: the door is shut
	open   map[net.Conn]struct{}
}

// newDoor makes a door that is shut, and takes it away after the test.
func newDoor(t *testing.T) *door {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener: listener, open: map[net.Conn]struct{}{}}
	d.running.Go(d.accept)
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		d.shut()
		d.running.Wait()
	})
	return d
}

func (d *door) address() string { return d.listener.Addr().String() }

// lead opens the door to a server.
func (d *door) lead(target string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.target = target
}

// shut cuts all connections and, as of then, each new one.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.target = ""
	for conn := range d.open {
		reset(conn)
	}
}

func (d *door) accept() {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.running.Go(func() { d.serve(client) })
	}
}

func (d *door) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // it may be cut
	d.mu.Lock()
	target := d.target
	d.mu.Unlock()
	if target == "" {
		return
	}
	server, err := net.Dial("tcp", target) //nolint:noctx // it is in this process
	if err != nil {
		return // for the client the door is shut
	}
	defer server.Close() //nolint:errcheck // it may be cut
	if !d.enter(target, client, server) {
		return
	}
	defer d.leave(client, server)
	var both sync.WaitGroup
	both.Go(func() {
		defer client.Close()           //nolint:errcheck // ends the other direction
		_, _ = io.Copy(client, server) // a cut ends it
	})
	both.Go(func() {
		defer server.Close()           //nolint:errcheck // ends the other direction
		_, _ = io.Copy(server, client) // a cut ends it
	})
	both.Wait()
}

// enter reports whether the door still leads to the target.
func (d *door) enter(target string, conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.target != target {
		return false
	}
	for _, conn := range conns {
		d.open[conn] = struct{}{}
	}
	return true
}

func (d *door) leave(conns ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range conns {
		delete(d.open, conn)
	}
}

// reset drops what is under way, as a server does that dies. It may be closed.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}
