-- Occurrence: severe tokens in real texts, and what these lose by them.

CREATE TABLE occurrence_corpus (
    audit_id          VARCHAR NOT NULL,
    corpus            VARCHAR NOT NULL,
    removal_texts     INTEGER NOT NULL,
    shift             DOUBLE,
    shift_low         DOUBLE,
    shift_high        DOUBLE,
    moved             DOUBLE,
    moved_low         DOUBLE,
    moved_high        DOUBLE,
    ordinary_moved    DOUBLE,
    excess            DOUBLE,
    excess_low        DOUBLE,
    excess_high       DOUBLE,
    corpus_id         VARCHAR NOT NULL,
    texts             INTEGER NOT NULL,
    tokens            BIGINT NOT NULL,
    listed            INTEGER NOT NULL,
    unreachable       INTEGER NOT NULL,
    met               INTEGER NOT NULL,
    severe            BIGINT NOT NULL,
    severe_texts      INTEGER NOT NULL,
    severe_share      DOUBLE,
    severe_share_low  DOUBLE,
    severe_share_high DOUBLE,
    dense_texts       INTEGER NOT NULL,
    PRIMARY KEY (audit_id, corpus)
);

CREATE TABLE occurrence (
    audit_id       VARCHAR NOT NULL,
    corpus         VARCHAR NOT NULL,
    token_id       INTEGER NOT NULL,
    removal_texts  INTEGER NOT NULL,
    shift          DOUBLE,
    shift_low      DOUBLE,
    shift_high     DOUBLE,
    moved          DOUBLE,
    moved_low      DOUBLE,
    moved_high     DOUBLE,
    ordinary_moved DOUBLE,
    excess         DOUBLE,
    excess_low     DOUBLE,
    excess_high    DOUBLE,
    severity       VARCHAR NOT NULL,
    loss           DOUBLE NOT NULL,
    occurrences    BIGINT NOT NULL,
    texts          INTEGER NOT NULL,
    per_million    DOUBLE NOT NULL,
    less_frequent  DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, token_id)
);

CREATE TABLE occurrence_text (
    audit_id       VARCHAR NOT NULL,
    corpus         VARCHAR NOT NULL,
    rank           INTEGER NOT NULL,
    position       BIGINT NOT NULL,
    tokens         INTEGER NOT NULL,
    severe         INTEGER NOT NULL,
    score          DOUBLE NOT NULL,
    log10_p        DOUBLE NOT NULL,
    worst_token_id INTEGER NOT NULL,
    PRIMARY KEY (audit_id, corpus, rank)
);
