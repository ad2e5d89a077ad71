package brokers_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"testing"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/watermill-inbox/inbox/internal/integration/brokers"
)

func TestNATS(t *testing.T) {
	t.Parallel()
	runSuite(t, Broker{
		Name:     "NATS",
		Open:     openNATS,
		OddTopic: ".-/\\\"$ü🙂\x00",
		Refuses: map[string]string{
			oddEmptyKey: "the client takes no header without a name",
			oddLarge:    "the server takes no message above 1 MB by default (max_payload)",
		},
		Unnamed: map[string]string{
			oddBlanks: "blanks before the value of a header are no part of it",
		},
	})
}

// openNATS has a NATS with JetStream in this process.
func openNATS(t *testing.T, s Setting) *Env {
	t.Helper()
	n := &natsServer{t: t, setting: s, door: newDoor(t), data: t.TempDir()}
	n.start()
	t.Cleanup(func() { n.stop() })
	n.provide()
	return &Env{
		Publisher:  n.publisher,
		Subscriber: n.subscriber,
		Database:   func() *database { return newSQLite(t) },
		Foreign:    n.foreign,
		Native:     brokers.NATSRecord(),
		Interrupt: func() {
			n.door.shut()
			n.stop()
			n.start()
		},
		RefuseAcks: func(refuse bool) { n.refuses = refuse },
	}
}

type natsServer struct {
	*natsd.Server
	t       *testing.T
	setting Setting
	door    *door
	data    string
	refuses bool // acks of those who subscribe from now on
}

// The users of the server. One of them may do all, and the other may not ack.
const (
	natsMember = "member"
	natsMuted  = "muted"
)

func (n *natsServer) options() *natsd.Options {
	mute := &natsd.Permissions{Publish: &natsd.SubjectPermission{Deny: []string{"$JS.ACK.>"}}}
	return &natsd.Options{
		Host: "127.0.0.1", Port: natsd.RANDOM_PORT,
		Users: []*natsd.User{
			{Username: natsMember, Password: natsMember},
			{Username: natsMuted, Password: natsMuted, Permissions: mute},
		},
		JetStream: true, StoreDir: n.data, NoLog: true, NoSigs: true,
	}
}

// start starts the server with the data that it had.
func (n *natsServer) start() {
	n.t.Helper()
	srv, err := natsd.NewServer(n.options())
	if err != nil {
		n.t.Fatal(err)
	}
	n.Server = srv
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		n.t.Fatal("the server does not start")
	}
	n.door.lead(srv.Addr().String())
}

func (n *natsServer) stop() {
	n.Shutdown()
	n.WaitForShutdown()
}

func (n *natsServer) url(user string) string {
	return "nats://" + user + ":" + user + "@" + n.door.address()
}

// connecting has clients come back as often as it takes. By default they give up
// after two minutes.
func connecting() []nats.Option {
	quiet := func(*nats.Conn, *nats.Subscription, error) {} // by default errors are printed
	return []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond), nats.ErrorHandler(quiet)}
}

// natsName makes names of streams and consumers, in which much is forbidden that is
// allowed in subjects.
func natsName(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:8])
}

func consumerName(topic, group string) string { return natsName(topic + " " + group) }

// provide makes a stream for each topic and a durable consumer for each group. One
// that the subscriber makes of itself is deleted by its Close, and the next member
// gets all messages of the stream again.
func (n *natsServer) provide() {
	n.t.Helper()
	n.connected(func(stream nats.JetStreamContext) {
		for _, topic := range n.setting.Topics {
			if _, err := stream.AddStream(&nats.StreamConfig{Name: natsName(topic.Name), Subjects: []string{topic.Name}}); err != nil {
				n.t.Fatal(err)
			}
			for _, group := range topic.Groups {
				name := consumerName(topic.Name, group)
				_, err := stream.AddConsumer(natsName(topic.Name), &nats.ConsumerConfig{
					Durable:        name,
					DeliverSubject: "deliver." + name,
					DeliverGroup:   name,
					AckPolicy:      nats.AckExplicitPolicy,
					AckWait:        n.setting.HandOver,
					MaxAckPending:  32, // the time of AckWait runs for what waits in a member, too
				})
				if err != nil {
					n.t.Fatal(err)
				}
			}
		}
	})
}

func (n *natsServer) publisher() message.Publisher {
	n.t.Helper()
	publisher, err := wmnats.NewPublisher(wmnats.PublisherConfig{URL: n.url(natsMember), NatsOptions: connecting()}, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return publisher
}

func (n *natsServer) subscriber(topic, group string) message.Subscriber {
	n.t.Helper()
	name, user := consumerName(topic, group), natsMember
	if n.refuses {
		user = natsMuted
	}
	onWay := &natsOnWay{closing: newHappening()}
	subscriber, err := wmnats.NewSubscriber(wmnats.SubscriberConfig{
		URL:              n.url(user),
		NatsOptions:      connecting(),
		QueueGroupPrefix: name,
		Unmarshaler:      onWay,
		JetStream: wmnats.JetStreamConfig{
			DurablePrefix:    name,
			SubscribeOptions: []nats.SubOpt{nats.Bind(natsName(topic), name), nats.ManualAck()},
			AckAsync:         n.refuses, // else it waits for an answer to each ack
		},
	}, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := subscriber.Close(); err != nil {
			n.t.Errorf("close a subscriber: %v", err)
		}
	})
	return natsSubscriber{Subscriber: subscriber, onWay: onWay}
}

// natsOnWay knows the messages that a subscriber is about to send to its channel.
type natsOnWay struct {
	brokers.NATSUnmarshaler
	closing happening

	mu    sync.Mutex
	count sync.WaitGroup
}

// Unmarshal is what the subscriber does first with a message.
func (w *natsOnWay) Unmarshal(m *nats.Msg) (*message.Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closing.done:
		return nil, errors.New("the subscriber is closing")
	default:
	}
	msg, err := w.NATSUnmarshaler.Unmarshal(m)
	if err == nil {
		w.count.Add(1)
	}
	return msg, err
}

// wait waits for the messages on the way, and lets no more come.
func (w *natsOnWay) wait() {
	w.mu.Lock()
	w.closing.happen()
	w.mu.Unlock()
	w.count.Wait()
}

// natsSubscriber closes when no message is on the way. Of itself the subscriber
// closes its channel while it may be sending to it: this is a data race, and can
// end the process with a panic.
type natsSubscriber struct {
	message.Subscriber
	onWay *natsOnWay
}

func (s natsSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	subscription, cancel := context.WithCancel(context.WithoutCancel(ctx))
	messages, err := s.Subscriber.Subscribe(subscription, topic)
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		s.onWay.wait()
		cancel()
	})
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for msg := range messages {
			s.onWay.count.Done()
			select {
			case out <- msg:
			case <-s.onWay.closing.done: // it is not acked
			}
		}
	}()
	return out, nil
}

func (s natsSubscriber) Close() error {
	s.onWay.wait()
	return s.Subscriber.Close()
}

// foreign publishes a message that has data and nothing else.
func (n *natsServer) foreign(topic, payload string) {
	n.t.Helper()
	n.connected(func(stream nats.JetStreamContext) {
		if _, err := stream.Publish(topic, []byte(payload)); err != nil {
			n.t.Fatal(err)
		}
	})
}

func (n *natsServer) connected(do func(nats.JetStreamContext)) {
	n.t.Helper()
	conn, err := nats.Connect(n.url(natsMember), connecting()...)
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	stream, err := conn.JetStream()
	if err != nil {
		n.t.Fatal(err)
	}
	do(stream)
}
