-- Inbox table, PostgreSQL, version 1.
-- Keys are compared byte for byte: the C collation neither folds nor reorders.
CREATE TABLE IF NOT EXISTS inbox_messages (
    consumer     text COLLATE "C" NOT NULL,
    source       text COLLATE "C" NOT NULL,
    message_id   text COLLATE "C" NOT NULL,
    event_type   text,
    received_at  timestamptz NOT NULL,
    processed_at timestamptz NOT NULL,
    outcome      text,
    result       bytea,
    produced     bytea,
    fingerprint  bytea,
    PRIMARY KEY (consumer, source, message_id)
);
CREATE INDEX IF NOT EXISTS inbox_messages_received_at ON inbox_messages (received_at);
