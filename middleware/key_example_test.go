package inboxmw_test

import (
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// The order numbers of a shop are unique for one tenant only.
func ExampleJoined() {
	key := inboxmw.Joined(inboxmw.Metadata("tenant"), inboxmw.Metadata("order"))

	msg := message.NewMessage("0191-4c2b", nil)
	msg.Metadata.Set("tenant", "acme")
	msg.Metadata.Set("order", "ord-1001")
	fmt.Println(key(msg))
	// Output: ~joined:~metadata%3Atenant%3Aacme:~metadata%3Aorder%3Aord-1001 <nil>
}

// One producer sends CloudEvents, an older one does not.
func ExampleFirstOf() {
	key := inboxmw.FirstOf(inboxmw.CloudEvents, inboxmw.UUID)

	event := message.NewMessage("0191-4c2b", nil)
	event.Metadata.Set("ce_source", "/shop/orders")
	event.Metadata.Set("ce_id", "evt-17")
	fmt.Println(key(event))

	plain := message.NewMessage("0191-4c2c", nil)
	fmt.Println(key(plain))

	malformed := message.NewMessage("0191-4c2d", nil)
	malformed.Metadata.Set("ce_id", "evt-18")
	fmt.Println(key(malformed))
	// Output:
	// ~cloudevents:/shop/orders:evt-17 <nil>
	// 0191-4c2c <nil>
	//  the message has the metadata field ce_id but no ce_source
}

// A producer names its messages by URLs of any length.
func ExampleHashed() {
	key := inboxmw.Hashed(inboxmw.Metadata("url"))

	msg := message.NewMessage("0191-4c2b", nil)
	msg.Metadata.Set("url", "https://shop.example/orders/1001?state=paid")
	fmt.Println(key(msg))
	// Output: ~hashed:fb9dc6d2b63cb0f30497e8f599c63b3d807eed18fd2eae0a82d26daa88b66c46 <nil>
}

// An EDI partner numbers its documents in the first line of the payload.
func ExampleTagged() {
	key := inboxmw.Tagged("edi", func(msg *message.Message) (string, error) {
		var number string
		if _, err := fmt.Sscanf(string(msg.Payload), "INVOIC %s\n", &number); err != nil {
			return "", fmt.Errorf("no document number: %w", err)
		}
		return number, nil
	})

	msg := message.NewMessage("0191-4c2b", []byte("INVOIC 0000017\n..."))
	fmt.Println(key(msg))
	// Output: ~edi:0000017 <nil>
}
