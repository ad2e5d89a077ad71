-- Inbox table, MySQL and MariaDB, version 1.
-- VARBINARY, as every text collation here merges ids that differ in case or
-- trailing blanks; InnoDB, as other engines do not roll back. Times are UTC.
CREATE TABLE IF NOT EXISTS inbox_messages (
    consumer     VARBINARY(255) NOT NULL,
    source       VARBINARY(255) NOT NULL,
    message_id   VARBINARY(512) NOT NULL,
    event_type   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    received_at  DATETIME(6) NOT NULL,
    processed_at DATETIME(6) NOT NULL,
    outcome      VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    result       LONGBLOB,
    produced     LONGBLOB,
    fingerprint  VARBINARY(64),
    PRIMARY KEY (consumer, source, message_id),
    KEY inbox_messages_received_at (received_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
