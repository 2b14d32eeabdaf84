-- 001: checkpoints, audits and their log, corpora, the vocabulary, sticky tokens, SOCM.

CREATE TABLE checkpoint (
    checkpoint_id     VARCHAR PRIMARY KEY,   -- 16 hex digits over the four hashes below
    source            VARCHAR NOT NULL,      -- as the user named it
    revision          VARCHAR,               -- hub commit, where there is one
    weights_sha256    VARCHAR NOT NULL,
    tokenizer_sha256  VARCHAR NOT NULL,
    config_sha256     VARCHAR NOT NULL,
    modules_sha256    VARCHAR NOT NULL,
    architecture      VARCHAR NOT NULL,
    hidden_size       INTEGER NOT NULL,      -- d
    layers            INTEGER,
    heads             INTEGER,
    parameters        BIGINT NOT NULL,
    vocabulary_size   INTEGER NOT NULL,      -- rows of the input embedding matrix
    pooling           VARCHAR NOT NULL,
    pooling_is_mean   BOOLEAN NOT NULL,
    modules           VARCHAR NOT NULL,      -- what runs after pooling, in order
    max_length        INTEGER NOT NULL       -- tokens, special tokens included
);

CREATE TABLE audit (
    audit_id          VARCHAR PRIMARY KEY,   -- by content: the same question has the same id
    checkpoint_id     VARCHAR NOT NULL,
    profile           VARCHAR NOT NULL,
    settings          JSON NOT NULL,
    seed              BIGINT NOT NULL,
    device            VARCHAR NOT NULL,
    dtype             VARCHAR NOT NULL,
    embaudit_version  VARCHAR NOT NULL,
    libraries         JSON NOT NULL,
    started           TIMESTAMPTZ NOT NULL,
    finished          TIMESTAMPTZ,
    seconds           DOUBLE,
    status            VARCHAR NOT NULL,      -- published | failed
    reason            VARCHAR                -- why it failed
);

CREATE TABLE measure_run (
    audit_id          VARCHAR NOT NULL,
    measure           VARCHAR NOT NULL,
    measure_key       VARCHAR NOT NULL,      -- cache key: checkpoint, inputs, settings, dtype, device kind, seed, version
    version           INTEGER NOT NULL,
    settings          JSON NOT NULL,
    started           TIMESTAMPTZ,
    seconds           DOUBLE,                -- null where every part came from the cache
    encodes           BIGINT,                -- texts that went through the checkpoint for this result
    status            VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, measure)
);

CREATE TABLE expectation_result (
    audit_id          VARCHAR NOT NULL,
    table_name        VARCHAR NOT NULL,
    shard             INTEGER NOT NULL,
    expectation       VARCHAR NOT NULL,
    column_name       VARCHAR NOT NULL,      -- '' where the expectation is about the table
    kwargs            JSON NOT NULL,
    severity          VARCHAR NOT NULL,      -- critical blocks publishing, warning is reported
    success           BOOLEAN NOT NULL,
    raised_exception  BOOLEAN NOT NULL,
    observed          VARCHAR,
    unexpected_count  BIGINT,
    examples          JSON,                  -- keys of the first rows that fail
    PRIMARY KEY (audit_id, table_name, shard, expectation, column_name, kwargs)
);

CREATE TABLE corpus (
    corpus_id         VARCHAR PRIMARY KEY,   -- by content
    name              VARCHAR NOT NULL,
    kind              VARCHAR NOT NULL,      -- texts | pairs
    source            VARCHAR NOT NULL,
    revision          VARCHAR,
    read              BIGINT NOT NULL,       -- rows in the source = kept + duplicate + blank + broken + undecodable
    kept              BIGINT NOT NULL,
    duplicate         BIGINT NOT NULL,
    blank             BIGINT NOT NULL,
    broken            BIGINT NOT NULL,
    undecodable       BIGINT NOT NULL,
    ingested          TIMESTAMPTZ NOT NULL
);

CREATE TABLE text (
    corpus_id         VARCHAR NOT NULL,
    position          BIGINT NOT NULL,       -- from 0, in the order of the source
    text              VARCHAR NOT NULL,
    title             VARCHAR,
    label             VARCHAR,
    external_id       VARCHAR,
    PRIMARY KEY (corpus_id, position)
);

CREATE TABLE text_pair (
    corpus_id         VARCHAR NOT NULL,
    position          BIGINT NOT NULL,
    first             VARCHAR NOT NULL,
    second            VARCHAR NOT NULL,
    score             DOUBLE,
    relation          VARCHAR NOT NULL,      -- sts | positive | hard_negative
    PRIMARY KEY (corpus_id, position)
);

CREATE TABLE audit_corpus (
    audit_id          VARCHAR NOT NULL,
    name              VARCHAR NOT NULL,
    corpus_id         VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, name)
);

CREATE TABLE token (
    checkpoint_id     VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    token             VARCHAR NOT NULL,      -- as written in the vocabulary
    text              VARCHAR NOT NULL,      -- decoded
    category          VARCHAR NOT NULL,      -- the paper's filter
    is_reachable      BOOLEAN NOT NULL,      -- some text produces the id
    origin            VARCHAR NOT NULL,
    script            VARCHAR NOT NULL,
    embedding_norm    DOUBLE NOT NULL,       -- of the input embedding
    cosine_to_mean    DOUBLE,                -- to the vocabulary's mean input embedding
    PRIMARY KEY (checkpoint_id, token_id)
);

CREATE TABLE sticky_pair (
    audit_id          VARCHAR NOT NULL,
    purpose           VARCHAR NOT NULL,      -- scoring | validation
    position          INTEGER NOT NULL,
    first             VARCHAR NOT NULL,
    second            VARCHAR NOT NULL,
    similarity        DOUBLE NOT NULL,       -- cosine before insertion
    PRIMARY KEY (audit_id, purpose, position)
);

CREATE TABLE sticky_score (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    draws             INTEGER NOT NULL,      -- (pair, operator) draws spent on it
    pull              DOUBLE,                -- 1 - rho_t/rho_0
    slope             DOUBLE,                -- retention
    pull_rank         INTEGER NOT NULL,      -- 1 = most pulling; later rungs of the narrowing rank first
    slope_rank        INTEGER NOT NULL,      -- 1 = least retaining
    shortlisted_by    VARCHAR,               -- definition, retention, definition+retention; null: not validated
    PRIMARY KEY (audit_id, token_id)
);

CREATE TABLE sticky_validation (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    protocol          VARCHAR NOT NULL,      -- definition | retention
    role              VARCHAR NOT NULL,      -- candidate | control
    points            INTEGER NOT NULL,      -- (pair, operator) points measured
    rho               DOUBLE NOT NULL,
    rho_0             DOUBLE NOT NULL,
    pull              DOUBLE NOT NULL,
    pull_low          DOUBLE,
    pull_high         DOUBLE,
    excess_pull       DOUBLE NOT NULL,       -- over the controls' median
    slope             DOUBLE NOT NULL,
    slope_low         DOUBLE,
    slope_high        DOUBLE,
    loss              DOUBLE NOT NULL,       -- 1 - slope / the controls' median slope
    loss_low          DOUBLE,
    loss_high         DOUBLE,
    focal_point       DOUBLE,
    focal_low         DOUBLE,
    focal_high        DOUBLE,
    sticks_to         VARCHAR,               -- 'u', or the focal point
    severity          VARCHAR NOT NULL,      -- of the loss: strong | moderate | weak | negligible
    value             DOUBLE NOT NULL,       -- what the threshold is compared with: pull, or slope
    threshold         DOUBLE,
    verdict           VARCHAR,               -- sticky | not_sticky | no_threshold; null for controls
    basis             VARCHAR NOT NULL,      -- screened | validated
    PRIMARY KEY (audit_id, token_id, protocol)
);

CREATE TABLE sticky_summary (
    audit_id            VARCHAR NOT NULL,
    protocol            VARCHAR NOT NULL,
    u                   DOUBLE NOT NULL,     -- mean pairwise cosine of the token strings, encoded as text
    u_ids               DOUBLE NOT NULL,     -- the same, ids encoded as ids
    u_input_embeddings  DOUBLE NOT NULL,     -- the same of the input embedding matrix
    vocabulary_size     INTEGER NOT NULL,
    eligible            INTEGER NOT NULL,    -- reachable or special
    scanned             INTEGER NOT NULL,
    rungs               JSON NOT NULL,       -- tokens that got at least so many draws
    encodes             BIGINT NOT NULL,     -- of scan and validation
    reliability         DOUBLE,              -- split-half, of the tokens with all draws
    scoring_pairs       INTEGER NOT NULL,
    validation_pairs    INTEGER NOT NULL,
    pairs_below_u       INTEGER NOT NULL,    -- among the validation pairs
    candidates          INTEGER NOT NULL,    -- on the protocol's own shortlist
    controls            INTEGER NOT NULL,
    control_median      DOUBLE NOT NULL,     -- of value, over the controls
    threshold           DOUBLE,
    sticky              INTEGER NOT NULL,    -- validated tokens beyond the threshold
    basis               VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, protocol)
);

CREATE TABLE socm_text (
    audit_id            VARCHAR NOT NULL,
    corpus              VARCHAR NOT NULL,
    corpus_id           VARCHAR NOT NULL,
    position            BIGINT NOT NULL,
    tokens              INTEGER NOT NULL,    -- n, special tokens included
    mean_norm           DOUBLE NOT NULL,     -- length of the mean before scaling
    trace_sigma         DOUBLE NOT NULL,
    exceeds_trace_bound BOOLEAN NOT NULL,    -- tr > 2: SOCM may leave [0, 1]
    is_truncated        BOOLEAN NOT NULL,
    PRIMARY KEY (audit_id, corpus, position)
);

-- Bulk: no key index (twelve million rows an audit); an audit's rows are replaced as a whole.
CREATE TABLE socm_pair (
    audit_id            VARCHAR NOT NULL,
    corpus              VARCHAR NOT NULL,
    first               INTEGER NOT NULL,    -- position of the text, first < second
    second              INTEGER NOT NULL,
    d_mu                DOUBLE NOT NULL,
    d_sigma             DOUBLE NOT NULL,
    socm                DOUBLE NOT NULL
);

CREATE TABLE socm_summary (
    audit_id                VARCHAR NOT NULL,
    corpus                  VARCHAR NOT NULL,
    corpus_id               VARCHAR NOT NULL,
    texts                   INTEGER NOT NULL,
    pairs                   BIGINT NOT NULL,
    socm_mean               DOUBLE NOT NULL,
    socm_low                DOUBLE,          -- 95 % jackknife over texts
    socm_high               DOUBLE,
    socm_min                DOUBLE NOT NULL,
    socm_max                DOUBLE NOT NULL,
    d_mu_mean               DOUBLE NOT NULL,
    d_sigma_mean            DOUBLE NOT NULL,
    trace_mean              DOUBLE NOT NULL,
    trace_max               DOUBLE NOT NULL,
    share_trace_above_bound DOUBLE NOT NULL,
    pooling_is_mean         BOOLEAN NOT NULL, -- false: SOCM describes a pooling that is not deployed
    PRIMARY KEY (audit_id, corpus)
);
