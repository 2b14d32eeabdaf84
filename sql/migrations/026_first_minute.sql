-- Integrity and quality, and the verdict that follows from an audit's findings.

CREATE TABLE weight (
    audit_id     VARCHAR NOT NULL,
    tensor       VARCHAR NOT NULL,
    layer        INTEGER,
    status       VARCHAR NOT NULL,
    file         VARCHAR,
    stored_name  VARCHAR,
    stored_dtype VARCHAR,
    shape        VARCHAR NOT NULL,
    entries      INTEGER NOT NULL,
    deviation    DOUBLE,
    largest      DOUBLE,
    content      VARCHAR,
    PRIMARY KEY (audit_id, tensor)
);

CREATE TABLE quality (
    audit_id         VARCHAR NOT NULL,
    data_set         VARCHAR NOT NULL,
    kind             VARCHAR NOT NULL,
    items            INTEGER NOT NULL,
    score            DOUBLE NOT NULL,
    score_low        DOUBLE,
    score_high       DOUBLE,
    words_score      DOUBLE,
    words_gain       DOUBLE,
    words_gain_low   DOUBLE,
    words_gain_high  DOUBLE,
    input_score      DOUBLE NOT NULL,
    input_gain       DOUBLE NOT NULL,
    input_gain_low   DOUBLE,
    input_gain_high  DOUBLE,
    auc              DOUBLE,
    auc_low          DOUBLE,
    auc_high         DOUBLE,
    directions       DOUBLE,
    separation       DOUBLE,
    unrelated_cosine DOUBLE,
    matching_cosine  DOUBLE,
    unrelated_median DOUBLE,
    matching_median  DOUBLE,
    threshold        DOUBLE,
    threshold_low    DOUBLE,
    threshold_high   DOUBLE,
    kept             DOUBLE,
    kept_low         DOUBLE,
    kept_high        DOUBLE,
    PRIMARY KEY (audit_id, data_set, kind)
);

CREATE TABLE quality_layer (
    audit_id   VARCHAR NOT NULL,
    data_set   VARCHAR NOT NULL,
    kind       VARCHAR NOT NULL,
    layer      INTEGER NOT NULL,
    score      DOUBLE NOT NULL,
    score_low  DOUBLE,
    score_high DOUBLE,
    PRIMARY KEY (audit_id, data_set, kind, layer)
);

CREATE TABLE quality_reading (
    audit_id  VARCHAR NOT NULL,
    reading   VARCHAR NOT NULL,
    data_set  VARCHAR NOT NULL,
    kind      VARCHAR NOT NULL,
    aspect    VARCHAR NOT NULL,
    gain      DOUBLE NOT NULL,
    gain_low  DOUBLE,
    gain_high DOUBLE,
    PRIMARY KEY (audit_id, reading, data_set, kind)
);

CREATE TABLE verdict (
    audit_id   VARCHAR NOT NULL,
    kind       VARCHAR NOT NULL,
    line       VARCHAR NOT NULL,
    cause      VARCHAR,
    looks      INTEGER NOT NULL,
    unmeasured INTEGER NOT NULL,
    PRIMARY KEY (audit_id, kind)
);
