-- Mitigation: what helps against sticky tokens, and what it costs.

CREATE TABLE mitigation (
    audit_id             VARCHAR NOT NULL,
    corpus               VARCHAR NOT NULL,
    corpus_id            VARCHAR NOT NULL,
    metric               VARCHAR NOT NULL,
    remedy               VARCHAR NOT NULL,
    clean                DOUBLE,
    clean_change         DOUBLE,
    clean_change_low     DOUBLE,
    clean_change_high    DOUBLE,
    poisoned             DOUBLE,
    poisoned_change      DOUBLE,
    poisoned_change_low  DOUBLE,
    poisoned_change_high DOUBLE,
    tokens               INTEGER NOT NULL,
    items                INTEGER NOT NULL,
    units                INTEGER NOT NULL,
    texts                BIGINT NOT NULL,
    touched              BIGINT NOT NULL,
    PRIMARY KEY (audit_id, corpus, metric, remedy)
);

CREATE TABLE mitigation_loss (
    audit_id         VARCHAR NOT NULL,
    loss             DOUBLE NOT NULL,
    loss_low         DOUBLE,
    loss_high        DOUBLE,
    change           DOUBLE,
    change_low       DOUBLE,
    change_high      DOUBLE,
    remedy           VARCHAR NOT NULL,
    severe           INTEGER NOT NULL,
    tokens           INTEGER NOT NULL,
    draws            INTEGER NOT NULL,
    copies           INTEGER NOT NULL,
    fitted_on        INTEGER,
    vocabulary       INTEGER NOT NULL,
    lossy            INTEGER NOT NULL,
    lossy_share      DOUBLE NOT NULL,
    lossy_share_low  DOUBLE,
    lossy_share_high DOUBLE,
    PRIMARY KEY (audit_id, remedy)
);

CREATE TABLE mitigation_token (
    audit_id    VARCHAR NOT NULL,
    loss        DOUBLE NOT NULL,
    loss_low    DOUBLE,
    loss_high   DOUBLE,
    change      DOUBLE,
    change_low  DOUBLE,
    change_high DOUBLE,
    remedy      VARCHAR NOT NULL,
    token_id    INTEGER NOT NULL,
    token       VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, remedy, token_id)
);
