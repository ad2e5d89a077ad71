package brokers

import (
	"fmt"
	"strconv"

	sqlv3 "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	sqlv4 "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"

	inboxmw "github.com/watermill-inbox/inbox/middleware"
)

// The metadata fields that [SQLv3Schema] and [SQLv4Schema] set.
const (
	SQLOffset      = "sql_offset"
	SQLTransaction = "sql_transaction"
)

// SQLv3Schema keeps the place of a message in its table, which watermill-sql v3
// uses for its acks only: the offset and, with the default schema of PostgreSQL,
// the transaction that inserted the row. Put it around the schema adapter of the
// subscriber.
type SQLv3Schema struct{ sqlv3.SchemaAdapter }

// UnmarshalMessage implements SchemaAdapter.
func (s SQLv3Schema) UnmarshalMessage(row sqlv3.Scanner) (sqlv3.Row, error) {
	r, err := s.SchemaAdapter.UnmarshalMessage(row)
	if err == nil {
		keepOffset(r.Msg, r.Offset, r.ExtraData)
	}
	return r, err
}

// SQLv4Schema is [SQLv3Schema] for watermill-sql v4.
type SQLv4Schema struct{ sqlv4.SchemaAdapter }

// UnmarshalMessage implements SchemaAdapter.
func (s SQLv4Schema) UnmarshalMessage(params sqlv4.UnmarshalMessageParams) (sqlv4.Row, error) {
	r, err := s.SchemaAdapter.UnmarshalMessage(params)
	if err == nil {
		keepOffset(r.Msg, r.Offset, r.ExtraData)
	}
	return r, err
}

// RequiresTransaction passes on what watermill-sql asks the adapter.
func (s SQLv4Schema) RequiresTransaction() bool {
	rt, ok := s.SchemaAdapter.(sqlv4.RequiresTransaction)
	return ok && rt.RequiresTransaction()
}

func keepOffset(msg *message.Message, offset int64, extra map[string]any) {
	if msg.Metadata == nil { // the column holds null
		msg.Metadata = message.Metadata{}
	}
	delete(msg.Metadata, SQLTransaction) // a producer does not say where its message is stored
	msg.Metadata.Set(SQLOffset, strconv.FormatInt(offset, 10))
	if transaction, ok := extra["transaction_id"]; ok {
		msg.Metadata.Set(SQLTransaction, fmt.Sprint(transaction))
	}
}

// SQLRecord is the topic and the offset that the schemas keep, as a key. It finds
// every redelivery, and misses a message that the producer has sent twice. Offsets
// start again when a table is made anew: give the topic another name then. With the
// default schema of PostgreSQL take [SQLTransactionRecord].
func SQLRecord() inboxmw.Part {
	return inboxmw.Tagged("sql", inboxmw.Joined(sqlTopic, inboxmw.Metadata(SQLOffset)))
}

// SQLTransactionRecord is [SQLRecord] together with the transaction, for the
// default schema of PostgreSQL: transactions start again only in a new cluster.
func SQLTransactionRecord() inboxmw.Part {
	return inboxmw.Tagged("sql", inboxmw.Joined(sqlTopic, inboxmw.Metadata(SQLTransaction), inboxmw.Metadata(SQLOffset)))
}

// sqlTopic is the topic of the handler, as each has its own table. A handler that
// moves to another topic keeps its name.
func sqlTopic(msg *message.Message) (string, error) {
	return message.SubscribeTopicFromCtx(msg.Context()), nil
}
