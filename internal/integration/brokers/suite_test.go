package brokers_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// Broker is a broker and its Pub/Sub, as the suite sees them.
type Broker struct {
	Name string

	// Reach skips or fails the test where the broker is not there. Nil: it runs in
	// this process.
	Reach func(tb testing.TB)

	// Open makes the topics of a case, with its groups.
	Open func(t *testing.T, s Setting) *Env

	// Lacks says of a case, by its name, why the broker cannot have it.
	Lacks map[string]string

	// OddTopic is added to the names of topics to make them as odd as the broker
	// allows.
	OddTopic string

	// Refuses are those of the odd messages that the publisher refuses, and Alters
	// those that arrive otherwise than they were sent; both are by the broker or its
	// Pub/Sub, before any inbox. Each says why.
	Refuses, Alters map[string]string

	// Unnamed are those of the odd messages that arrive without their UUID, and why.
	Unnamed map[string]string
}

// Setting is what a case wants of a broker.
type Setting struct {
	Topics []Topic

	// HandOver is after how long a broker that has such a time gives a message that
	// is not acked to another member of the group.
	HandOver time.Duration
}

// Topic is a topic of a case. What is published to it comes once to each group.
type Topic struct {
	Name   string
	Groups []string
}

// Env is a broker with the topics of one case. Its functions fail the test if they
// cannot do what they are asked.
type Env struct {
	// Publisher opens one.
	Publisher func() message.Publisher

	// Subscriber opens a new member of a group of the topic.
	Subscriber func(topic, group string) message.Subscriber

	// Database opens the database of the inbox.
	Database func() *database

	// Foreign publishes as a producer that knows nothing of Watermill does.
	Foreign func(topic, payload string)

	// Native is the key by the broker's own identity.
	Native inboxmw.Part

	// Interrupt stops the broker and starts it again or, where others use it too,
	// cuts all connections of the case.
	Interrupt func()

	// HandOver has the broker give what is not acked to another member at once. Nil:
	// the time does it.
	HandOver func()

	// RefuseAcks has the broker refuse acks, or take them again.
	RefuseAcks func(refuse bool)
}

// testCase is one promise that holds on each broker.
type testCase struct {
	name string
	run  func(t *testing.T, b Broker)
}

// The names of cases, for those brokers that lack one.
const (
	caseFlow       = "each message is processed once although the producer repeats some"
	caseFailures   = "a handler that fails and panics at random is run until it succeeds"
	caseMutation   = "a message comes back as it was sent although the handler changed it"
	caseDeploy     = "deploys in mid-work double no effect and lose no produced message"
	caseNaive      = "the same deploy loses a produced message with an inbox that keeps none"
	casePublish    = "what a handler produced is published although publishing fails for a while"
	caseCrash      = "a crash between commit and publish loses no produced message"
	caseOverlap    = "two members that hold one message apply it once"
	caseInterrupt  = "a broker that goes away under load and comes back doubles and loses nothing"
	caseRefusedAck = "messages whose acks the broker refused come again and are duplicates"
	caseForeign    = "a message without an id is refused with an error that names the key functions"
	caseNative     = "a message without an id is processed once under the key of the broker"
	caseHandlers   = "two handlers of one topic process each message once each"
	caseServices   = "two services that share one table do not take each other's messages"
	caseOdd        = "odd messages are processed or go to the poison queue, and harm no other"
	caseOddTopic   = "topics with odd names are as good as others"
)

func cases() []testCase {
	return []testCase{
		{caseFlow, testFlow},
		{caseFailures, testFailures},
		{caseMutation, testMutation},
		{caseDeploy, testDeploy},
		{caseNaive, testNaive},
		{casePublish, testPublish},
		{caseCrash, testCrash},
		{caseOverlap, testOverlap},
		{caseInterrupt, testInterrupt},
		{caseRefusedAck, testRefusedAck},
		{caseForeign, testForeign},
		{caseNative, testNative},
		{caseHandlers, testHandlers},
		{caseServices, testServices},
		{caseOdd, testOdd},
		{caseOddTopic, testOddTopic},
	}
}

// runSuite runs the cases on one broker, and enters them into the matrix.
func runSuite(t *testing.T, b Broker) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() { results.enter(t, b.Name, c.name, b.Lacks[c.name]) })
			if reason, lacks := b.Lacks[c.name]; lacks {
				t.Skip(reason)
			}
			if b.Reach != nil {
				b.Reach(t)
			}
			c.run(t, b)
		})
	}
}
