-- Inbox table, SQLite, version 1.
-- The checks keep one id from being stored twice, as text and as a blob. The
-- rows are small and read by their key only, so they live in the key's tree.
CREATE TABLE IF NOT EXISTS inbox_messages (
    consumer     TEXT NOT NULL CHECK (typeof(consumer) = 'text'),
    source       TEXT NOT NULL CHECK (typeof(source) = 'text'),
    message_id   TEXT NOT NULL CHECK (typeof(message_id) = 'text'),
    event_type   TEXT,
    received_at  TEXT NOT NULL,
    processed_at TEXT NOT NULL,
    outcome      TEXT,
    result       BLOB,
    produced     BLOB,
    fingerprint  BLOB,
    PRIMARY KEY (consumer, source, message_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS inbox_messages_received_at ON inbox_messages (received_at);
