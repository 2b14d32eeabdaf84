-- A temperature for each layer or head.

CREATE TABLE tempscale_search (
    audit_id       VARCHAR NOT NULL,
    task           VARCHAR NOT NULL,
    part           VARCHAR NOT NULL,
    items          BIGINT NOT NULL,
    units          BIGINT NOT NULL,
    corpus         VARCHAR NOT NULL,
    corpus_id      VARCHAR NOT NULL,
    reads          VARCHAR NOT NULL,
    max_tokens     INTEGER NOT NULL,
    tau            DOUBLE NOT NULL,
    taus           VARCHAR NOT NULL,
    trials         INTEGER NOT NULL,
    recommendation VARCHAR NOT NULL,
    score_before   DOUBLE,
    score_single   DOUBLE,
    score_after    DOUBLE,
    difference     DOUBLE,
    low            DOUBLE,
    high           DOUBLE,
    beyond         DOUBLE,
    beyond_low     DOUBLE,
    beyond_high    DOUBLE,
    PRIMARY KEY (audit_id, corpus, task, part)
);
