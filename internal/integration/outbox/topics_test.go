package outbox_test

import (
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
)

func TestTopicNames(t *testing.T) {
	t.Parallel()
	for _, f := range flavours() {
		t.Run("letters, digits and -$:._ are allowed: "+f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, f.server.open(t, f.driver, ""))
			topic := "Out-$:._9" + r.suffix
			f.makeTopics(t, r.database, topic)
			r.works(t, f.policy(), topic, message.NewMessage("m1", payload("x")))
			wantMessage(t, subscribe(t, f.source(t, r.database), topic), "m1", string(payload("x")))
		})
		for _, topic := range []string{"orders/created", "bestellungen.geändert", "orders created", `orders"; DROP`} {
			t.Run(topic+" fails the delivery: "+f.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, f.server.open(t, f.driver, ""))
				r.fails(t, f.policy(), topic, message.NewMessage("m1", payload("x")), "publish to the outbox", "topic name")
			})
		}
	}
	t.Run("the envelope takes any topic that the broker takes", func(t *testing.T) {
		t.Parallel()
		const topic = "bestellungen/geändert"
		r, policy, arrived := outboxWithRelay(t, topic)
		r.works(t, policy, topic, message.NewMessage("m1", payload("x")))
		wantMessage(t, arrived, "m1", string(payload("x")))
	})
	t.Run("PostgreSQL cuts long names, so that two topics share one table", func(t *testing.T) {
		t.Parallel()
		d := postgresServer.open(t, "pgx", "")
		f := queues(1)[0]
		long := "t" + d.suffix + strings.Repeat("t", 50)
		f.makeTopics(t, d, long+"1", long+"2")
		f.publish(t, d, long+"1", message.NewMessage("m1", payload("x")))
		wantMessage(t, subscribe(t, f.source(t, d), long+"2"), "m1", string(payload("x")))
	})
	t.Run("MariaDB refuses long names", func(t *testing.T) {
		t.Parallel()
		d := mariadbServer.open(t, "mysql", "")
		if err := queues(1)[1].source(t, d).SubscribeInitialize(strings.Repeat("t", 60)); err == nil {
			t.Error("it does not: the guide can be shorter")
		}
	})
}
