-- Inbox tables, PostgreSQL with two generations, version 1.
-- A rotation empties the previous table and exchanges the names of both. The names
-- of the indexes stay as they are.
-- Keys are compared byte for byte: the C collation neither folds nor reorders.
CREATE TABLE IF NOT EXISTS inbox_messages_current (
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
    CONSTRAINT inbox_messages_pkey_1 PRIMARY KEY (consumer, source, message_id)
);
CREATE INDEX IF NOT EXISTS inbox_messages_received_1 ON inbox_messages_current (received_at);
CREATE TABLE IF NOT EXISTS inbox_messages_previous (
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
    CONSTRAINT inbox_messages_pkey_2 PRIMARY KEY (consumer, source, message_id)
);
CREATE INDEX IF NOT EXISTS inbox_messages_received_2 ON inbox_messages_previous (received_at);
