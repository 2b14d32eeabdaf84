-- Other poolings of the same token states beside the mean.

CREATE TABLE socm_pooling (
    audit_id         VARCHAR NOT NULL,
    corpus           VARCHAR NOT NULL,
    pooling          VARCHAR NOT NULL,
    is_served        BOOLEAN NOT NULL,
    texts            INTEGER NOT NULL,
    pairs            BIGINT NOT NULL,
    kept             DOUBLE NOT NULL,
    kept_low         DOUBLE,
    kept_high        DOUBLE,
    cosine_to_mean   DOUBLE NOT NULL,
    correlation      DOUBLE,
    correlation_low  DOUBLE,
    correlation_high DOUBLE,
    PRIMARY KEY (audit_id, corpus, pooling)
);
