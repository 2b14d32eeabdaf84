-- Findings: what an audit's figures come to, in words.

CREATE TABLE finding (
    audit_id VARCHAR NOT NULL,
    measure  VARCHAR NOT NULL,
    name     VARCHAR NOT NULL,
    place    INTEGER NOT NULL,
    level    VARCHAR NOT NULL,
    sentence VARCHAR NOT NULL,
    meaning  VARCHAR,
    advice   VARCHAR,
    value    DOUBLE,
    low      DOUBLE,
    high     DOUBLE,
    PRIMARY KEY (audit_id, measure, name)
);
