-- What the AS2 gateway sent. It counts its messages per partner, and so do the
-- control references of EDIFACT and X12: both partners have the same ones.
CREATE TABLE sent_orders (
    partner           TEXT NOT NULL,
    order_no          TEXT NOT NULL,
    as2_message_id    TEXT NOT NULL,
    control_reference TEXT NOT NULL,
    PRIMARY KEY (partner, order_no)
);

INSERT INTO sent_orders (partner, order_no, as2_message_id, control_reference) VALUES
    ('nordhandel', 'NH-70211', '<000481@as2.acme-supply.example>', '481'),
    ('nordhandel', 'NH-70212', '<000482@as2.acme-supply.example>', '482'),
    ('nordhandel', 'NH-70215', '<000483@as2.acme-supply.example>', '483'),
    ('nordhandel', 'NH-70219', '<000484@as2.acme-supply.example>', '484'),
    ('midwest', '4500017733', '<000481@as2.acme-supply.example>', '481'),
    ('midwest', '4500017740', '<000482@as2.acme-supply.example>', '482'),
    ('midwest', '4500017741', '<000483@as2.acme-supply.example>', '483'),
    ('midwest', '4500017752', '<000484@as2.acme-supply.example>', '484');

-- The receiver's log: one row for each transmission, also of the same document.
CREATE TABLE receipts (
    transmission TEXT PRIMARY KEY,
    partner      TEXT NOT NULL,
    file         TEXT NOT NULL
);

CREATE TABLE order_history (
    id          INTEGER PRIMARY KEY,
    partner     TEXT NOT NULL,
    order_no    TEXT NOT NULL,
    kind        TEXT NOT NULL,
    transition  TEXT NOT NULL,
    disposition TEXT NOT NULL,
    issued_at   TEXT NOT NULL,
    file        TEXT NOT NULL
);
