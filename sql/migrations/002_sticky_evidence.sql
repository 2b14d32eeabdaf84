-- 002: the sequential search and what it misses, evidence beside the verdicts, the reference protocol.
-- Columns added to tables that hold rows are null there: older audits did not measure them.

ALTER TABLE sticky_score ADD COLUMN is_pilot BOOLEAN;             -- one of the random tokens that got all draws

ALTER TABLE sticky_validation ADD COLUMN shift DOUBLE;            -- mean of Sim after - Sim before
ALTER TABLE sticky_validation ADD COLUMN compression DOUBLE;      -- SD of Sim after / SD of Sim before
ALTER TABLE sticky_validation ADD COLUMN near_u_05 DOUBLE;        -- share of points with |Sim - u| <= 0.05
ALTER TABLE sticky_validation ADD COLUMN near_u_10 DOUBLE;        -- ... <= 0.1
ALTER TABLE sticky_validation ADD COLUMN p_value DOUBLE;          -- H0: no more extreme than the controls' 95th percentile
ALTER TABLE sticky_validation ADD COLUMN q_value DOUBLE;          -- Benjamini-Hochberg over the protocol's candidates

-- verdict may be not_shortlisted from here on: a candidate of the other protocol.

ALTER TABLE sticky_summary ADD COLUMN search VARCHAR;             -- sequential | exhaustive
ALTER TABLE sticky_summary ADD COLUMN pilot INTEGER;              -- random tokens that got all draws
ALTER TABLE sticky_summary ADD COLUMN exhaustive_encodes BIGINT;  -- what the same tokens would take without any saving
ALTER TABLE sticky_summary ADD COLUMN scan_dtype VARCHAR;         -- precision of the scan
ALTER TABLE sticky_summary ADD COLUMN rank_correlation DOUBLE;    -- Spearman, scan's precision against float32; null: float32
ALTER TABLE sticky_summary ADD COLUMN pilot_shortlisted INTEGER;  -- of the pilot, on the shortlist by all draws
ALTER TABLE sticky_summary ADD COLUMN pilot_missed INTEGER;       -- of those, how many the search would have dropped
ALTER TABLE sticky_summary ADD COLUMN miss_rate DOUBLE;           -- pilot_missed / pilot_shortlisted
ALTER TABLE sticky_summary ADD COLUMN miss_low DOUBLE;            -- 95 % Clopper-Pearson
ALTER TABLE sticky_summary ADD COLUMN miss_high DOUBLE;
ALTER TABLE sticky_summary ADD COLUMN threshold_points INTEGER;   -- common points that the threshold's quartiles rest on
ALTER TABLE sticky_summary ADD COLUMN validation_points INTEGER;  -- points of a token that went all the way
ALTER TABLE sticky_summary ADD COLUMN near_u_05_before DOUBLE;    -- share of points near u without insertion
ALTER TABLE sticky_summary ADD COLUMN near_u_10_before DOUBLE;

CREATE TABLE sticky_dose (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    role              VARCHAR NOT NULL,      -- candidate | control
    copies            INTEGER NOT NULL,      -- n
    points            INTEGER NOT NULL,
    pull              DOUBLE,
    slope             DOUBLE NOT NULL,
    loss              DOUBLE NOT NULL,       -- against the controls' median at the same n
    PRIMARY KEY (audit_id, token_id, copies)
);

-- The paper's first experiment: similarity of one fixed set of pairs before and after n copies at the end.
CREATE TABLE sticky_shift (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    role              VARCHAR NOT NULL,      -- sticky | ordinary
    position          INTEGER NOT NULL,      -- of the pair in sticky_pair, purpose 'shift'
    before            DOUBLE NOT NULL,
    after             DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, token_id, position)
);

CREATE TABLE sticky_attention (
    audit_id          VARCHAR NOT NULL,
    layer             INTEGER NOT NULL,      -- 0 is the first
    includes_special  BOOLEAN NOT NULL,      -- special tokens among the sticky ones confound the comparison
    sticky_tokens     INTEGER NOT NULL,
    ordinary_tokens   INTEGER NOT NULL,
    sentences         INTEGER NOT NULL,
    wasserstein       DOUBLE NOT NULL,       -- first Wasserstein distance of the attention received
    permuted_low      DOUBLE NOT NULL,       -- 2.5 and 97.5 % of the distance with tokens permuted
    permuted_high     DOUBLE NOT NULL,
    p_value           DOUBLE NOT NULL,
    sticky_q05        DOUBLE NOT NULL,
    sticky_q25        DOUBLE NOT NULL,
    sticky_q50        DOUBLE NOT NULL,
    sticky_q75        DOUBLE NOT NULL,
    sticky_q95        DOUBLE NOT NULL,
    ordinary_q05      DOUBLE NOT NULL,
    ordinary_q25      DOUBLE NOT NULL,
    ordinary_q50      DOUBLE NOT NULL,
    ordinary_q75      DOUBLE NOT NULL,
    ordinary_q95      DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, layer, includes_special)
);

-- Which origins, scripts and embeddings are over-represented among sticky tokens, against the scanned vocabulary.
CREATE TABLE sticky_enrichment (
    audit_id          VARCHAR NOT NULL,
    selection         VARCHAR NOT NULL,      -- lowest_100, sticky_definition, sticky_retention, strong_or_moderate
    attribute         VARCHAR NOT NULL,      -- origin, script, origin x script, ..., embedding_norm, cosine_to_mean
    value             VARCHAR NOT NULL,      -- '' for the two numbers
    selected_with     INTEGER,
    selected          INTEGER NOT NULL,
    scanned_with      INTEGER,
    scanned           INTEGER NOT NULL,
    share_selected    DOUBLE,
    share_scanned     DOUBLE,
    fold              DOUBLE,                -- share_selected / share_scanned
    odds_ratio        DOUBLE,
    p_value           DOUBLE,                -- Fisher; Mann-Whitney for the two numbers
    q_value           DOUBLE,                -- Benjamini-Hochberg within selection and attribute
    selected_median   DOUBLE,
    scanned_median    DOUBLE,
    auc               DOUBLE,                -- P(a selected token's number is larger than another's)
    PRIMARY KEY (audit_id, selection, attribute, value)
);

CREATE TABLE sticky_reference (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    inserted          VARCHAR NOT NULL,      -- the decoded text that was glued
    score             DOUBLE NOT NULL,
    score_rank        INTEGER NOT NULL,
    is_shortlisted    BOOLEAN NOT NULL,      -- at or above the 98th percentile
    value             DOUBLE,                -- share of pairs whose mean distance falls, 4:4:3
    threshold         DOUBLE,
    verdict           VARCHAR,               -- sticky | not_sticky | no_threshold; null: not validated
    PRIMARY KEY (audit_id, token_id)
);

CREATE TABLE sticky_reference_summary (
    audit_id          VARCHAR NOT NULL,
    protocol          VARCHAR NOT NULL,      -- reference
    u                 DOUBLE NOT NULL,
    scanned           INTEGER NOT NULL,      -- ok and special tokens
    scoring_pairs     INTEGER NOT NULL,
    validation_pairs  INTEGER NOT NULL,
    encodes           BIGINT NOT NULL,
    cutoff            DOUBLE NOT NULL,       -- of the shortlist
    candidates        INTEGER NOT NULL,
    threshold         DOUBLE,
    sticky            INTEGER NOT NULL,
    PRIMARY KEY (audit_id, protocol)
);
