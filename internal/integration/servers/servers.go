// Package servers finds the servers that integration tests need.
package servers

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "github.com/lib/pq"              // the driver "postgres"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
)

// Server is a server that may be there or not.
type Server struct {
	Name string
	Env  string // the variable that holds another address than the usual one

	usual string
	ask   func(ctx context.Context, address string) error

	once sync.Once
	err  error
}

// The servers.
//
//nolint:gochecknoglobals // each is asked once whether it is there
var (
	Postgres = &Server{
		Name: "PostgreSQL", Env: "INBOX_TEST_POSTGRES_DSN", ask: askDatabase("pgx"),
		usual: "postgres://postgres@127.0.0.1:5432/test?sslmode=disable",
	}
	MariaDB = &Server{
		Name: "MariaDB", Env: "INBOX_TEST_MYSQL_DSN", ask: askDatabase("mysql"),
		usual: "root@tcp(127.0.0.1:3306)/test",
	}
	RabbitMQ = &Server{ //nolint:gosec // the password is the one that RabbitMQ comes with
		Name: "RabbitMQ", Env: "INBOX_TEST_AMQP_URL", ask: askRabbit,
		usual: "amqp://guest:guest@127.0.0.1:5672/",
	}
	Redis = &Server{
		Name: "Redis", Env: "INBOX_TEST_REDIS_ADDR", ask: askRedis,
		usual: "127.0.0.1:6379",
	}
)

// Address returns where the server is, in the form that its client takes.
func (s *Server) Address() string { return cmp.Or(os.Getenv(s.Env), s.usual) }

// Missing returns why the server cannot be reached, nil if it can.
func (s *Server) Missing() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.err = s.ask(ctx, s.Address())
	})
	return s.err
}

// Need skips the test if the server is not there, or fails it if all are required.
func (s *Server) Need(tb testing.TB) {
	tb.Helper()
	if err := s.Missing(); err != nil {
		Lacking(tb, fmt.Sprintf("%s cannot be reached (%s): %v", s.Name, s.Env, err))
	}
}

// Lacking skips the test as this machine lacks something, or fails it if all is
// required.
func Lacking(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("INBOX_TEST_REQUIRE") == "all" {
		tb.Fatalf("required by INBOX_TEST_REQUIRE=all: %s", what)
	}
	tb.Skip(what)
}

// Report names the servers that could not be reached, for the end of a run.
func Report(w io.Writer, of ...*Server) {
	for _, s := range of {
		if err := s.Missing(); err != nil {
			_, _ = fmt.Fprintf(w, "NOT COVERED: %s (%s): %v\n", s.Name, s.Env, err)
		}
	}
}

func askDatabase(driver string) func(context.Context, string) error {
	return func(ctx context.Context, dsn string) error {
		db, err := sql.Open(driver, dsn)
		if err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // nothing was written
		return db.PingContext(ctx)
	}
}

func askRabbit(_ context.Context, url string) error {
	connection, err := amqp091.Dial(url)
	if err != nil {
		return err
	}
	return connection.Close()
}

func askRedis(ctx context.Context, address string) error {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close() //nolint:errcheck // nothing was written
	return client.Ping(ctx).Err()
}
