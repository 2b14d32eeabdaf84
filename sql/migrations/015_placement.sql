-- Placement: where copies of sticky tokens do most harm.

CREATE TABLE placement (
    audit_id    VARCHAR NOT NULL,
    strategy    VARCHAR NOT NULL,
    loss        DOUBLE NOT NULL,
    loss_low    DOUBLE,
    loss_high   DOUBLE,
    change      DOUBLE,
    change_low  DOUBLE,
    change_high DOUBLE,
    copies      DOUBLE NOT NULL,
    place       DOUBLE NOT NULL,
    role        VARCHAR NOT NULL,
    loss_seen   DOUBLE NOT NULL,
    tokens      INTEGER NOT NULL,
    draws       INTEGER NOT NULL,
    budget      INTEGER NOT NULL,
    encodes     INTEGER NOT NULL,
    PRIMARY KEY (audit_id, strategy, role)
);

CREATE TABLE placement_token (
    audit_id    VARCHAR NOT NULL,
    strategy    VARCHAR NOT NULL,
    loss        DOUBLE NOT NULL,
    loss_low    DOUBLE,
    loss_high   DOUBLE,
    change      DOUBLE,
    change_low  DOUBLE,
    change_high DOUBLE,
    copies      DOUBLE NOT NULL,
    place       DOUBLE NOT NULL,
    token_id    INTEGER NOT NULL,
    token       VARCHAR NOT NULL,
    example     VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, strategy, token_id)
);
