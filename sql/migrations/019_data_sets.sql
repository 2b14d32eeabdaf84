-- Scored pairs of several data sets: which one a pair is from, and what copies do to the score of each.

ALTER TABLE text_pair ADD COLUMN data_set VARCHAR;

CREATE TABLE impact_data_set (
    audit_id    VARCHAR NOT NULL,
    corpus      VARCHAR NOT NULL,
    metric      VARCHAR NOT NULL,
    data_set    VARCHAR NOT NULL,
    arm         VARCHAR NOT NULL,
    poisoned    VARCHAR NOT NULL,
    score       DOUBLE,
    change      DOUBLE,
    change_low  DOUBLE,
    change_high DOUBLE,
    beyond      DOUBLE,
    beyond_low  DOUBLE,
    beyond_high DOUBLE,
    items       INTEGER NOT NULL,
    units       INTEGER NOT NULL,
    PRIMARY KEY (audit_id, corpus, metric, data_set, arm, poisoned)
);
