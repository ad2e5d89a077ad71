package brokers_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/watermill-inbox/inbox/internal/integration/brokers"
)

// Each topic has its table, and so its own offsets. Were the topic no part of the
// key, a handler that moves to another topic would take new messages for old ones.
func TestSQLRecordsOfTwoTopicsDiffer(t *testing.T) {
	t.Parallel()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	channel := gochannel.NewGoChannel(gochannel.Config{}, nil)
	type found struct{ topic, offset, transaction string }
	keys := make(chan found, 2)
	topics := []string{"old", "new"}
	for _, topic := range topics {
		router.AddConsumerHandler(topic, topic, channel, func(msg *message.Message) error {
			offset, err := brokers.SQLRecord()(msg)
			if err != nil {
				return err
			}
			transaction, err := brokers.SQLTransactionRecord()(msg)
			keys <- found{topic, offset, transaction}
			return err
		})
	}
	ended := make(chan error, 1)
	go func() { ended <- router.Run(t.Context()) }()
	<-router.Running()
	seen := map[string]string{}
	for _, topic := range topics {
		msg := message.NewMessage("", nil)
		msg.Metadata.Set(brokers.SQLOffset, "1")
		msg.Metadata.Set(brokers.SQLTransaction, "1")
		if err := channel.Publish(topic, msg); err != nil {
			t.Fatal(err)
		}
		f := <-keys
		for _, key := range []string{f.offset, f.transaction} {
			if other, known := seen[key]; known || key == "" {
				t.Errorf("the key %q of topic %s is that of %q too", key, f.topic, other)
			}
			seen[key] = f.topic
		}
	}
	if err := router.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
