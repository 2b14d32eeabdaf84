-- Impact: what sticky tokens do to retrieval, clustering, classification and similarity.

CREATE TABLE impact (
    audit_id    VARCHAR NOT NULL,
    corpus      VARCHAR NOT NULL,
    metric      VARCHAR NOT NULL,
    arm         VARCHAR NOT NULL,
    poisoned    VARCHAR NOT NULL,
    score       DOUBLE,
    change      DOUBLE,
    change_low  DOUBLE,
    change_high DOUBLE,
    beyond      DOUBLE,
    beyond_low  DOUBLE,
    beyond_high DOUBLE,
    corpus_id   VARCHAR NOT NULL,
    tokens      INTEGER NOT NULL,
    items       INTEGER NOT NULL,
    units       INTEGER NOT NULL,
    texts       BIGINT NOT NULL,
    held        BIGINT NOT NULL,
    copies      DOUBLE NOT NULL,
    shortened   BIGINT NOT NULL,
    PRIMARY KEY (audit_id, corpus, metric, arm, poisoned)
);

CREATE TABLE impact_token (
    audit_id    VARCHAR NOT NULL,
    corpus      VARCHAR NOT NULL,
    metric      VARCHAR NOT NULL,
    arm         VARCHAR NOT NULL,
    poisoned    VARCHAR NOT NULL,
    token_id    INTEGER NOT NULL,
    score       DOUBLE,
    change      DOUBLE,
    change_low  DOUBLE,
    change_high DOUBLE,
    beyond      DOUBLE,
    beyond_low  DOUBLE,
    beyond_high DOUBLE,
    token       VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, corpus, metric, arm, poisoned, token_id)
);

CREATE TABLE impact_query (
    audit_id  VARCHAR NOT NULL,
    corpus    VARCHAR NOT NULL,
    query     VARCHAR NOT NULL,
    arm       VARCHAR NOT NULL,
    poisoned  VARCHAR NOT NULL,
    ndcg_10   DOUBLE NOT NULL,
    mrr_10    DOUBLE NOT NULL,
    recall_10 DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, query, arm, poisoned)
);
