package main

import (
	"cmp"
	"context"
	"os"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// brokers are all that differs from one broker to the other.
var brokers = map[string]constructor{ //nolint:gochecknoglobals // constant
	"amqp":      openAMQP,
	"gochannel": openGoChannel,
	"kafka":     openKafka,
	"nats":      openNATS,
	"redis":     openRedis,
	"sql":       openSQL,
}

const dsnEnv = "INBOX_TEST_POSTGRES_DSN"

// servers are where the brokers usually are that do not run in this process.
var servers = map[string]string{ //nolint:gochecknoglobals,gosec // constant; guest is what RabbitMQ comes with
	"amqp":  "amqp://guest:guest@127.0.0.1:5672/",
	"redis": "127.0.0.1:6379",
	"sql":   cmp.Or(os.Getenv(dsnEnv), "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"),
}

type constructor func(ctx context.Context, s setting) (*broker, error)

// setting is what a constructor is told.
type setting struct {
	server           string // empty: in this process
	orders, invoices string // the topics, which are new
	logger           watermill.LoggerAdapter
}

// broker is what the example wants of one.
type broker struct {
	publisher func() (message.Publisher, error)

	// subscriber opens a member of the group that reads the topic. There is one
	// group for each topic.
	subscriber func(topic string) (message.Subscriber, error)

	// forgetful says that there are no groups, and that closing a subscriber loses
	// what is not acked.
	forgetful bool

	// close removes all that is left of the topics.
	close func() error
}
