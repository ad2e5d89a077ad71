package brokers_test

import (
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/watermill-inbox/inbox/internal/integration/brokers"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
)

func TestAMQP(t *testing.T) {
	t.Parallel()
	lacks := map[string]string{}
	if raceDetector { // https://github.com/ThreeDotsLabs/watermill/issues/693
		lacks[caseInterrupt] = "its Pub/Sub has a data race when it connects again, so this runs without the race detector"
	}
	runSuite(t, Broker{
		Name:     "amqp",
		Reach:    servers.RabbitMQ.Need,
		Open:     openAMQP,
		Lacks:    lacks,
		OddTopic: " \x00/#*ü", // names have to be UTF-8
	})
}

// openAMQP has a fanout exchange for each topic, and a queue for each group.
func openAMQP(t *testing.T, s Setting) *Env {
	t.Helper()
	uri, err := amqp091.ParseURI(servers.RabbitMQ.Address())
	if err != nil {
		t.Fatal(err)
	}
	server := net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))
	door := newDoor(t)
	door.lead(server)
	channel := openAMQPChannel(t)
	wires := &amqpWires{door: door}
	for _, topic := range s.Topics {
		for _, group := range topic.Groups {
			initializeAMQP(t, channel, topic.Name, group)
		}
	}
	return &Env{
		Publisher: func() message.Publisher {
			p, err := amqp.NewPublisher(amqpConfig("", wires.dial), watermill.NopLogger{})
			if err != nil {
				t.Fatal(err)
			}
			return &orderly{Publisher: p}
		},
		Subscriber: func(topic, group string) message.Subscriber {
			dial := wires.dial
			if topic == s.Topics[0].Name {
				dial = wires.dialMember
			}
			subscriber, err := amqp.NewSubscriber(amqpConfig(group, dial), watermill.NopLogger{})
			if err != nil {
				t.Fatal(err)
			}
			return subscriber
		},
		Database: func() *database { return newSQLite(t) },
		Foreign: func(topic, payload string) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			confirmed, err := channel.PublishWithDeferredConfirmWithContext(ctx, topic, "", false, false,
				amqp091.Publishing{MessageId: watermill.NewUUID(), Body: []byte(payload)})
			if err != nil {
				t.Fatal(err)
			}
			if taken, err := confirmed.WaitContext(ctx); err != nil || !taken {
				t.Fatalf("the broker has taken the message: %t, %v", taken, err)
			}
		},
		Native: brokers.AMQPRecord(),
		Interrupt: func() {
			door.shut()
			door.lead(server)
		},
		HandOver:   func() { wires.closeChannel(t) },
		RefuseAcks: wires.loseAcks.Store,
	}
}

func amqpConfig(group string, dial func(network, address string) (net.Conn, error)) amqp.Config {
	config := amqp.NewDurablePubSubConfig(servers.RabbitMQ.Address(), amqp.GenerateQueueNameTopicNameWithSuffix(group))
	config.Connection.AmqpConfig = &amqp091.Config{Dial: dial}
	config.Marshaler = brokers.AMQPMarshaler{}
	config.Publish.ConfirmDelivery = true // else a publish that the broker lost is taken for done
	config.Consume.Qos.PrefetchCount = 50 // so that a member has many that are not acked
	return config
}

// openAMQPChannel opens a channel with confirms that nothing cuts.
func openAMQPChannel(t *testing.T) *amqp091.Channel {
	t.Helper()
	connection, err := amqp091.Dial(servers.RabbitMQ.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if closeErr := connection.Close(); closeErr != nil {
			t.Error(closeErr)
		}
	})
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return channel
}

// initializeAMQP makes the queue of a group, as what is published before comes to
// no one, and deletes it after the test.
func initializeAMQP(t *testing.T, channel *amqp091.Channel, topic, group string) {
	t.Helper()
	config := amqpConfig(group, nil)
	subscriber, err := amqp.NewSubscriber(config, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	if err := subscriber.SubscribeInitialize(topic); err != nil {
		t.Fatal(err)
	}
	if err := subscriber.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := channel.QueueDelete(config.Queue.GenerateName(topic), false, false, false); err != nil {
			t.Errorf("delete a queue: %v", err)
		}
		if err := channel.ExchangeDelete(topic, false, false); err != nil {
			t.Errorf("delete an exchange: %v", err)
		}
	})
}

// amqpWires are the connections of one case.
type amqpWires struct {
	door     *door
	loseAcks atomic.Bool

	mu      sync.Mutex
	members []*amqpWire // those on which orders are read, the oldest first
}

func (w *amqpWires) dial(network, _ string) (net.Conn, error) {
	return amqp091.DefaultDial(patience)(network, w.door.address())
}

func (w *amqpWires) dialMember(network, address string) (net.Conn, error) {
	connection, err := w.dial(network, address)
	if err != nil {
		return nil, err
	}
	wire := &amqpWire{Conn: connection, loseAcks: &w.loseAcks}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members = append(w.members, wire)
	return wire, nil
}

// closeChannel has the broker close the channel of the first member, as it does
// when an ack takes too long: what that has not acked goes to another one.
func (w *amqpWires) closeChannel(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.members[0].ackNothing(); err != nil {
		t.Fatal(err)
	}
}

// amqpWire sees the frames that a member sends. An ack has no reply, so one that is
// lost is all that a broker can do to refuse it.
type amqpWire struct {
	net.Conn
	loseAcks *atomic.Bool

	mu        sync.Mutex
	begun     bool   // the first 8 bytes are no frame
	pending   []byte // the beginning of a frame
	consuming uint16 // the channel that messages come on
}

// The methods that matter, by class and number, as a frame has them.
const (
	amqpConsume = 60<<16 | 20
	amqpAck     = 60<<16 | 80
)

// The parts of a frame: type, channel, and size come before the payload, of which
// the method is the beginning, and a mark is its end.
const (
	amqpMethodFrame = 1
	amqpHead        = 1 + 2 + 4
	amqpMark        = 0xCE
)

func (w *amqpWire) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, data...)
	for {
		n := w.next()
		if n > len(w.pending) {
			return len(data), nil
		}
		frame := w.pending[:n]
		w.pending = w.pending[n:]
		if w.passes(frame) {
			if _, err := w.Conn.Write(frame); err != nil {
				return 0, err
			}
		}
	}
}

// next returns how many bytes it takes to go on.
func (w *amqpWire) next() int {
	switch {
	case !w.begun:
		return 8
	case len(w.pending) < amqpHead:
		return amqpHead
	}
	return amqpHead + int(binary.BigEndian.Uint32(w.pending[3:])) + 1
}

func (w *amqpWire) passes(frame []byte) bool {
	if !w.begun {
		w.begun = true
		return true
	}
	if frame[0] != amqpMethodFrame {
		return true
	}
	switch binary.BigEndian.Uint32(frame[amqpHead:]) {
	case amqpConsume:
		w.consuming = binary.BigEndian.Uint16(frame[1:])
	case amqpAck:
		return !w.loseAcks.Load()
	}
	return true
}

// ackNothing acks a delivery that was never made, which is an error of the channel.
func (w *amqpWire) ackNothing() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var frame []byte
	frame = append(frame, amqpMethodFrame)
	frame = binary.BigEndian.AppendUint16(frame, w.consuming)
	frame = binary.BigEndian.AppendUint32(frame, 4+8+1)
	frame = binary.BigEndian.AppendUint32(frame, amqpAck)
	frame = binary.BigEndian.AppendUint64(frame, 1<<40)
	frame = append(frame, 0, amqpMark)
	_, err := w.Conn.Write(frame)
	return err
}
