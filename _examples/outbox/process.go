package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

const poll = 20 * time.Millisecond

const (
	shopName    = "shop"
	relayName   = "relay"
	billingName = "billing"
)

// failed is the exit code of a process that has not killed itself.
const failed = 2

// services are what a process can be.
var services = map[string]func(*process, *sql.DB) error{ //nolint:gochecknoglobals // constant
	shopName:    (*process).addShop,
	relayName:   (*process).addRelay,
	billingName: (*process).addBilling,
}

// The places where a process kills itself.
const (
	nowhere   = "nowhere"
	midWork   = "mid-work"   // the transaction is open, or the relay has not published
	beforeAck = "before-ack" // the transaction is committed, or the relay has published
)

// crash is a place, and how many messages come to it before the process dies.
type crash struct {
	at  string
	nth int64
}

// crashes are those of each service. Its last life has none.
func crashes() []crash {
	return []crash{{beforeAck, 40}, {midWork, 30}, {beforeAck, 1}, {beforeAck, 25}, {midWork, 1}}
}

// process is one life of a service.
type process struct {
	router *message.Router
	crash  crash
	came   atomic.Int64
}

// comesTo does not return if the process dies here, as by kill -9.
func (p *process) comesTo(at string) {
	if at != p.crash.at || p.came.Add(1) != p.crash.nth {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until the kill is felt
}

// beforeAck is a middleware outside of the inbox.
func (p *process) beforeAck(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		out, err := next(msg)
		if err == nil {
			p.comesTo(beforeAck)
		}
		return out, err
	}
}

// mortal is a publisher whose process may die once it has published.
type mortal struct {
	message.Publisher
	process *process
}

func (m mortal) Publish(topic string, messages ...*message.Message) error {
	err := m.Publisher.Publish(topic, messages...)
	m.process.comesTo(midWork)
	return err
}

// serve is the main function of a process. It ends when its stdin does.
func serve(ctx context.Context, dsn string, args []string) error {
	if len(args) != 4 {
		return errors.New("the arguments of a process are its service, the schema, and where and when it dies")
	}
	add, ok := services[args[0]]
	if !ok {
		return fmt.Errorf("there is no service %q", args[0])
	}
	nth, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	db, _, err := open(dsn, args[1])
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the process ends
	logger := watermill.NewSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return err
	}
	p := &process{router: router, crash: crash{args[2], nth}}
	router.AddMiddleware(p.beforeAck)
	if err := add(p, db); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = router.Close() // Run says what it says
	}()
	return router.Run(ctx)
}

// keepAlive runs a service as a process, and again when it has killed itself,
// until ctx ends.
func keepAlive(ctx context.Context, dsn, schema, name string, killed *atomic.Int64) error {
	for _, c := range append(crashes(), crash{at: nowhere}) {
		err := live(ctx, dsn, schema, name, c)
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was stopped
		case c.at != nowhere && errors.As(err, &exit) && exit.ExitCode() != failed:
			killed.Add(1)
		default:
			return fmt.Errorf("%s ended without being killed: %w", name, err)
		}
	}
	return nil
}

// live runs a process to its end.
func live(ctx context.Context, dsn, schema, name string, c crash) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, name, schema, c.at, strconv.FormatInt(c.nth, 10)) //nolint:gosec // ourselves
	cmd.Env = append(os.Environ(), dsnEnv+"="+dsn)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Cancel = stdin.Close // the process then closes its router
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}
