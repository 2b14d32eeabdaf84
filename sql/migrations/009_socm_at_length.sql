-- SOCM at equal length: texts cut to one length, pairs by the lengths of their texts, and how far SOCM follows length.

CREATE TABLE socm_cut (
    audit_id                VARCHAR NOT NULL,
    corpus                  VARCHAR NOT NULL,
    tokens                  INTEGER NOT NULL,
    texts                   INTEGER NOT NULL,
    pairs                   BIGINT NOT NULL,
    d_mu_mean               DOUBLE NOT NULL,
    d_sigma_mean            DOUBLE NOT NULL,
    socm_mean               DOUBLE NOT NULL,
    socm_low                DOUBLE,
    socm_high               DOUBLE,
    trace_mean              DOUBLE NOT NULL,
    share_trace_above_bound DOUBLE NOT NULL,
    undefined               INTEGER NOT NULL,
    PRIMARY KEY (audit_id, corpus, tokens)
);

CREATE TABLE socm_length (
    audit_id     VARCHAR NOT NULL,
    corpus       VARCHAR NOT NULL,
    shorter      INTEGER NOT NULL,
    longer       INTEGER NOT NULL,
    texts        INTEGER NOT NULL,
    pairs        BIGINT NOT NULL,
    d_mu_mean    DOUBLE NOT NULL,
    d_sigma_mean DOUBLE NOT NULL,
    socm_mean    DOUBLE NOT NULL,
    socm_low     DOUBLE,
    socm_high    DOUBLE,
    trace_mean   DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, shorter, longer)
);

ALTER TABLE socm_summary ADD COLUMN correlation_trace DOUBLE;
ALTER TABLE socm_summary ADD COLUMN correlation_length DOUBLE;
