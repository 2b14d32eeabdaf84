-- Queries against short and long documents.

CREATE TABLE length_ranking (
    audit_id   VARCHAR NOT NULL,
    corpus     VARCHAR NOT NULL,
    condition  VARCHAR NOT NULL,
    relevant   VARCHAR NOT NULL,
    boundary   DOUBLE NOT NULL,
    "read"     INTEGER NOT NULL,
    documents  INTEGER NOT NULL,
    pairs      INTEGER NOT NULL,
    units      INTEGER NOT NULL,
    by_short   DOUBLE NOT NULL,
    by_long    DOUBLE NOT NULL,
    difference DOUBLE NOT NULL,
    low        DOUBLE,
    high       DOUBLE,
    PRIMARY KEY (audit_id, corpus, condition, relevant)
);
