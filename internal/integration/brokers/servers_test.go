package brokers_test

import (
	"cmp"
	"context"
	"database/sql"
	"os"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
)

// server is a server that may be there or not.
type server struct {
	name, env, usual string
	ask              func(ctx context.Context, address string) error // whether it is there

	once sync.Once
	err  error
}

//nolint:gochecknoglobals // asked once
var (
	postgresServer = &server{
		name: "PostgreSQL", env: "INBOX_TEST_POSTGRES_DSN", ask: askDatabase("pgx"),
		usual: "postgres://postgres@127.0.0.1:5432/test?sslmode=disable",
	}
	mysqlServer = &server{
		name: "MySQL or MariaDB", env: "INBOX_TEST_MYSQL_DSN", ask: askDatabase("mysql"),
		usual: "root@tcp(127.0.0.1:3306)/test",
	}
	rabbitServer = &server{name: "RabbitMQ", env: "INBOX_TEST_AMQP_URL", ask: askRabbit, usual: "amqp://guest:guest@127.0.0.1:5672/"} //nolint:gosec // what RabbitMQ comes with
	redisServer  = &server{name: "Redis", env: "INBOX_TEST_REDIS_ADDR", ask: askRedis, usual: "127.0.0.1:6379"}
)

func servers() []*server {
	return []*server{postgresServer, mysqlServer, rabbitServer, redisServer}
}

func (s *server) address() string { return cmp.Or(os.Getenv(s.env), s.usual) }

// missing returns why the server cannot be reached, nil if it can.
func (s *server) missing() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.err = s.ask(ctx, s.address())
	})
	return s.err
}

// need skips the test if the server is not there, or fails it if all are required.
func (s *server) need(t *testing.T) {
	t.Helper()
	err := s.missing()
	switch {
	case err == nil:
	case os.Getenv("INBOX_TEST_REQUIRE") == "all":
		t.Fatalf("%s is required (INBOX_TEST_REQUIRE=all) and cannot be reached: %v", s.name, err)
	default:
		t.Skipf("%s cannot be reached (%s): %v", s.name, s.env, err)
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
