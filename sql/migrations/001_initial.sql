-- 001: all tables. Once this is released, a change is a file with the next number.
-- What the columns of published tables mean is said in embaudit/tables/, and commented on them from there.

-- ---- Checkpoints, audits and their log ----

CREATE TABLE checkpoint (
    checkpoint_id     VARCHAR PRIMARY KEY,
    source            VARCHAR NOT NULL,
    revision          VARCHAR,
    weights_sha256    VARCHAR NOT NULL,
    tokenizer_sha256  VARCHAR NOT NULL,
    config_sha256     VARCHAR NOT NULL,
    modules_sha256    VARCHAR NOT NULL,
    architecture      VARCHAR NOT NULL,
    hidden_size       INTEGER NOT NULL,
    layers            INTEGER,
    heads             INTEGER,
    parameters        BIGINT NOT NULL,
    vocabulary_size   INTEGER NOT NULL,
    pooling           VARCHAR NOT NULL,
    pooling_is_mean   BOOLEAN NOT NULL,
    modules           VARCHAR NOT NULL,
    max_length        INTEGER NOT NULL
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

CREATE TABLE audit_backbone (
    audit_id          VARCHAR NOT NULL,
    backbone_audit_id VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, backbone_audit_id)
);

-- Which rows of which audit maintenance has deleted; summaries and the log never are.
CREATE TABLE pruning (
    audit_id          VARCHAR NOT NULL,
    table_name        VARCHAR NOT NULL,
    rows              BIGINT NOT NULL,       -- that were deleted
    reason            VARCHAR NOT NULL,      -- the rule, in words
    pruned            TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (audit_id, table_name, pruned)
);

-- ---- Corpora ----

CREATE TABLE corpus (
    corpus_id         VARCHAR PRIMARY KEY,
    name              VARCHAR NOT NULL,
    kind              VARCHAR NOT NULL,
    source            VARCHAR NOT NULL,
    revision          VARCHAR,
    read              BIGINT NOT NULL,
    kept              BIGINT NOT NULL,
    duplicate         BIGINT NOT NULL,
    blank             BIGINT NOT NULL,
    broken            BIGINT NOT NULL,
    undecodable       BIGINT NOT NULL,
    undrawn           BIGINT NOT NULL,
    share_read        DOUBLE NOT NULL,
    ingested          TIMESTAMPTZ NOT NULL
);

CREATE TABLE text (
    corpus_id         VARCHAR NOT NULL,
    position          BIGINT NOT NULL,
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
    relation          VARCHAR NOT NULL,
    PRIMARY KEY (corpus_id, position)
);

CREATE TABLE audit_corpus (
    audit_id          VARCHAR NOT NULL,
    name              VARCHAR NOT NULL,
    corpus_id         VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, name)
);

-- ---- The vocabulary and sticky tokens (arXiv 2507.18171) ----

CREATE TABLE token (
    checkpoint_id     VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    token             VARCHAR NOT NULL,
    text              VARCHAR NOT NULL,
    category          VARCHAR NOT NULL,
    is_reachable      BOOLEAN NOT NULL,
    origin            VARCHAR NOT NULL,
    script            VARCHAR NOT NULL,
    embedding_norm    DOUBLE NOT NULL,
    cosine_to_mean    DOUBLE,
    PRIMARY KEY (checkpoint_id, token_id)
);

CREATE TABLE sticky_pair (
    audit_id          VARCHAR NOT NULL,
    purpose           VARCHAR NOT NULL,
    position          INTEGER NOT NULL,
    first             VARCHAR NOT NULL,
    second            VARCHAR NOT NULL,
    similarity        DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, purpose, position)
);

CREATE TABLE sticky_score (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    draws             INTEGER NOT NULL,
    pull              DOUBLE,
    slope             DOUBLE,
    pull_rank         INTEGER NOT NULL,
    slope_rank        INTEGER NOT NULL,
    shortlisted_by    VARCHAR,
    is_pilot          BOOLEAN,
    PRIMARY KEY (audit_id, token_id)
);

CREATE TABLE sticky_validation (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    protocol          VARCHAR NOT NULL,
    role              VARCHAR NOT NULL,
    points            INTEGER NOT NULL,
    rho               DOUBLE NOT NULL,
    rho_0             DOUBLE NOT NULL,
    pull              DOUBLE NOT NULL,
    pull_low          DOUBLE,
    pull_high         DOUBLE,
    excess_pull       DOUBLE NOT NULL,
    slope             DOUBLE NOT NULL,
    slope_low         DOUBLE,
    slope_high        DOUBLE,
    loss              DOUBLE NOT NULL,
    loss_low          DOUBLE,
    loss_high         DOUBLE,
    focal_point       DOUBLE,
    focal_low         DOUBLE,
    focal_high        DOUBLE,
    sticks_to         VARCHAR,
    severity          VARCHAR NOT NULL,
    value             DOUBLE NOT NULL,
    threshold         DOUBLE,
    verdict           VARCHAR,
    basis             VARCHAR NOT NULL,
    shift             DOUBLE,
    compression       DOUBLE,
    near_u_05         DOUBLE,
    near_u_10         DOUBLE,
    p_value           DOUBLE,
    q_value           DOUBLE,
    PRIMARY KEY (audit_id, token_id, protocol)
);

CREATE TABLE sticky_summary (
    audit_id            VARCHAR NOT NULL,
    protocol            VARCHAR NOT NULL,
    u                   DOUBLE NOT NULL,
    u_ids               DOUBLE NOT NULL,
    u_input_embeddings  DOUBLE NOT NULL,
    vocabulary_size     INTEGER NOT NULL,
    eligible            INTEGER NOT NULL,
    scanned             INTEGER NOT NULL,
    rungs               JSON NOT NULL,
    encodes             BIGINT NOT NULL,
    reliability         DOUBLE,
    scoring_pairs       INTEGER NOT NULL,
    validation_pairs    INTEGER NOT NULL,
    pairs_below_u       INTEGER NOT NULL,
    candidates          INTEGER NOT NULL,
    controls            INTEGER NOT NULL,
    control_median      DOUBLE NOT NULL,
    threshold           DOUBLE,
    sticky              INTEGER NOT NULL,
    basis               VARCHAR NOT NULL,
    search              VARCHAR,
    pilot               INTEGER,
    exhaustive_encodes  BIGINT,
    scan_dtype          VARCHAR,
    rank_correlation    DOUBLE,
    pilot_shortlisted   INTEGER,
    pilot_missed        INTEGER,
    miss_rate           DOUBLE,
    miss_low            DOUBLE,
    miss_high           DOUBLE,
    threshold_points    INTEGER,
    validation_points   INTEGER,
    near_u_05_before    DOUBLE,
    near_u_10_before    DOUBLE,
    PRIMARY KEY (audit_id, protocol)
);

CREATE TABLE sticky_dose (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    role              VARCHAR NOT NULL,
    copies            INTEGER NOT NULL,
    points            INTEGER NOT NULL,
    pull              DOUBLE,
    slope             DOUBLE NOT NULL,
    loss              DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, token_id, copies)
);

CREATE TABLE sticky_shift (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    role              VARCHAR NOT NULL,
    position          INTEGER NOT NULL,
    before            DOUBLE NOT NULL,
    after             DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, token_id, position)
);

CREATE TABLE sticky_attention (
    audit_id          VARCHAR NOT NULL,
    layer             INTEGER NOT NULL,
    includes_special  BOOLEAN NOT NULL,
    sticky_tokens     INTEGER NOT NULL,
    ordinary_tokens   INTEGER NOT NULL,
    sentences         INTEGER NOT NULL,
    wasserstein       DOUBLE NOT NULL,
    permuted_low      DOUBLE NOT NULL,
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

CREATE TABLE sticky_enrichment (
    audit_id          VARCHAR NOT NULL,
    selection         VARCHAR NOT NULL,
    attribute         VARCHAR NOT NULL,
    value             VARCHAR NOT NULL,
    selected_with     INTEGER,
    selected          INTEGER NOT NULL,
    scanned_with      INTEGER,
    scanned           INTEGER NOT NULL,
    share_selected    DOUBLE,
    share_scanned     DOUBLE,
    fold              DOUBLE,
    odds_ratio        DOUBLE,
    p_value           DOUBLE,
    q_value           DOUBLE,
    selected_median   DOUBLE,
    scanned_median    DOUBLE,
    auc               DOUBLE,
    PRIMARY KEY (audit_id, selection, attribute, value)
);

CREATE TABLE sticky_reference (
    audit_id          VARCHAR NOT NULL,
    token_id          INTEGER NOT NULL,
    inserted          VARCHAR NOT NULL,
    score             DOUBLE NOT NULL,
    score_rank        INTEGER NOT NULL,
    is_shortlisted    BOOLEAN NOT NULL,
    value             DOUBLE,
    threshold         DOUBLE,
    verdict           VARCHAR,
    PRIMARY KEY (audit_id, token_id)
);

CREATE TABLE sticky_reference_summary (
    audit_id          VARCHAR NOT NULL,
    protocol          VARCHAR NOT NULL,
    u                 DOUBLE NOT NULL,
    scanned           INTEGER NOT NULL,
    scoring_pairs     INTEGER NOT NULL,
    validation_pairs  INTEGER NOT NULL,
    encodes           BIGINT NOT NULL,
    cutoff            DOUBLE NOT NULL,
    candidates        INTEGER NOT NULL,
    threshold         DOUBLE,
    sticky            INTEGER NOT NULL,
    PRIMARY KEY (audit_id, protocol)
);

-- ---- SOCM: what mean pooling throws away (arXiv 2604.27398) ----

CREATE TABLE socm_text (
    audit_id            VARCHAR NOT NULL,
    corpus              VARCHAR NOT NULL,
    corpus_id           VARCHAR NOT NULL,
    position            BIGINT NOT NULL,
    tokens              INTEGER NOT NULL,
    mean_norm           DOUBLE NOT NULL,
    trace_sigma         DOUBLE,
    exceeds_trace_bound BOOLEAN,
    is_truncated        BOOLEAN NOT NULL,
    is_undefined        BOOLEAN,
    mean_cosine         DOUBLE,
    PRIMARY KEY (audit_id, corpus, position)
);

-- Bulk: no key index (twelve million rows an audit); an audit's rows are replaced as a whole.
CREATE TABLE socm_pair (
    audit_id            VARCHAR NOT NULL,
    corpus              VARCHAR NOT NULL,
    first               INTEGER NOT NULL,
    second              INTEGER NOT NULL,
    d_mu                DOUBLE NOT NULL,
    d_sigma             DOUBLE NOT NULL,
    socm                DOUBLE NOT NULL
);

CREATE TABLE socm_listed_pair (
    audit_id          VARCHAR NOT NULL,
    corpus            VARCHAR NOT NULL,
    position          BIGINT NOT NULL,
    first             INTEGER NOT NULL,
    second            INTEGER NOT NULL,
    d_mu              DOUBLE NOT NULL,
    d_sigma           DOUBLE NOT NULL,
    socm              DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, position)
);

CREATE TABLE socm_summary (
    audit_id                VARCHAR NOT NULL,
    corpus                  VARCHAR NOT NULL,
    corpus_id               VARCHAR NOT NULL,
    texts                   INTEGER NOT NULL,
    pairs                   BIGINT NOT NULL,
    socm_mean               DOUBLE NOT NULL,
    socm_low                DOUBLE,
    socm_high               DOUBLE,
    socm_min                DOUBLE NOT NULL,
    socm_max                DOUBLE NOT NULL,
    d_mu_mean               DOUBLE NOT NULL,
    d_sigma_mean            DOUBLE NOT NULL,
    trace_mean              DOUBLE NOT NULL,
    trace_max               DOUBLE NOT NULL,
    share_trace_above_bound DOUBLE NOT NULL,
    pooling_is_mean         BOOLEAN NOT NULL,
    pair_kind               VARCHAR,
    undefined               INTEGER,
    one_token               INTEGER,
    truncated               INTEGER,
    socm_q01                DOUBLE,
    socm_q05                DOUBLE,
    socm_q25                DOUBLE,
    socm_q50                DOUBLE,
    socm_q75                DOUBLE,
    socm_q95                DOUBLE,
    socm_q99                DOUBLE,
    share_cosine_above_bound DOUBLE,
    share_bounds_agree      DOUBLE,
    method                  VARCHAR,
    accuracy                DOUBLE,
    checked_pairs           INTEGER,
    PRIMARY KEY (audit_id, corpus)
);

CREATE TABLE socm_surface (
    audit_id          VARCHAR NOT NULL,
    corpus            VARCHAR NOT NULL,
    alpha             DOUBLE NOT NULL,
    beta              DOUBLE NOT NULL,
    socm_mean         DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, alpha, beta)
);

CREATE TABLE socm_tightness (
    audit_id            VARCHAR NOT NULL,
    corpus              VARCHAR NOT NULL,
    first               INTEGER NOT NULL,
    second              INTEGER NOT NULL,
    d_mu                DOUBLE NOT NULL,
    d_sigma             DOUBLE NOT NULL,
    socm                DOUBLE NOT NULL,
    w2_squared          DOUBLE,
    gaussian_w2_squared DOUBLE NOT NULL,
    d_mu_sif            DOUBLE,
    d_sigma_sif         DOUBLE,
    socm_sif            DOUBLE,
    PRIMARY KEY (audit_id, corpus, first, second)
);

CREATE TABLE socm_plane (
    audit_id          VARCHAR NOT NULL,
    corpus            VARCHAR NOT NULL,
    pair              VARCHAR NOT NULL,
    position          INTEGER NOT NULL,
    point             INTEGER NOT NULL,
    token             VARCHAR,
    x                 DOUBLE NOT NULL,
    y                 DOUBLE NOT NULL,
    socm              DOUBLE NOT NULL,
    share             DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, pair, position, point)
);

-- ---- Concentration layer by layer (arXiv 2604.27398, section 6; sigma_a of arXiv 2410.24200) ----

CREATE TABLE layer_text (
    audit_id                               VARCHAR NOT NULL,
    corpus                                 VARCHAR NOT NULL,
    position                               BIGINT NOT NULL,
    layer                                  INTEGER NOT NULL,
    tokens                                 INTEGER NOT NULL,
    lambda_head_mean                       DOUBLE,
    lambda_head_max                        DOUBLE,
    lambda_head_averaged_attention         DOUBLE,
    lambda_multi_head_bound                DOUBLE,
    lambda_gaussian                        DOUBLE,
    contraction                            DOUBLE,
    contraction_normed                     DOUBLE,
    r                                      DOUBLE,
    c                                      DOUBLE,
    normalised_spread                      DOUBLE,
    within_text_cosine                     DOUBLE,
    sigma_a                                DOUBLE,
    spread_h                               DOUBLE NOT NULL,
    spread_z                               DOUBLE NOT NULL,
    spread_y                               DOUBLE NOT NULL,
    spread_x                               DOUBLE NOT NULL,
    mean_norm_y                            DOUBLE NOT NULL,
    mean_norm_x                            DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, position, layer)
);

CREATE TABLE layer_stat (
    audit_id                               VARCHAR NOT NULL,
    corpus                                 VARCHAR NOT NULL,
    corpus_id                              VARCHAR NOT NULL,
    layer                                  INTEGER NOT NULL,
    family                                 VARCHAR NOT NULL,
    norm_placement                         VARCHAR NOT NULL,
    shares_weights                         BOOLEAN NOT NULL,
    texts                                  INTEGER NOT NULL,
    undefined                              INTEGER NOT NULL,
    truncated                              INTEGER NOT NULL,
    tokens_mean                            DOUBLE NOT NULL,
    value_output_norm                      DOUBLE NOT NULL,
    lambda_head_mean                       DOUBLE,
    lambda_head_mean_low                   DOUBLE,
    lambda_head_mean_high                  DOUBLE,
    lambda_head_max                        DOUBLE,
    lambda_head_max_low                    DOUBLE,
    lambda_head_max_high                   DOUBLE,
    lambda_head_averaged_attention         DOUBLE,
    lambda_head_averaged_attention_low     DOUBLE,
    lambda_head_averaged_attention_high    DOUBLE,
    lambda_multi_head_bound                DOUBLE,
    lambda_multi_head_bound_low            DOUBLE,
    lambda_multi_head_bound_high           DOUBLE,
    lambda_gaussian                        DOUBLE,
    lambda_gaussian_low                    DOUBLE,
    lambda_gaussian_high                   DOUBLE,
    contraction                            DOUBLE,
    contraction_low                        DOUBLE,
    contraction_high                       DOUBLE,
    contraction_normed                     DOUBLE,
    contraction_normed_low                 DOUBLE,
    contraction_normed_high                DOUBLE,
    r                                      DOUBLE,
    r_low                                  DOUBLE,
    r_high                                 DOUBLE,
    c                                      DOUBLE,
    c_low                                  DOUBLE,
    c_high                                 DOUBLE,
    normalised_spread                      DOUBLE,
    normalised_spread_low                  DOUBLE,
    normalised_spread_high                 DOUBLE,
    within_text_cosine                     DOUBLE,
    within_text_cosine_low                 DOUBLE,
    within_text_cosine_high                DOUBLE,
    sigma_a                                DOUBLE,
    sigma_a_low                            DOUBLE,
    sigma_a_high                           DOUBLE,
    contraction_of_means                   DOUBLE,
    r_of_means                             DOUBLE,
    c_of_means                             DOUBLE,
    normalised_spread_of_means             DOUBLE,
    holds_head_mean                        DOUBLE,
    holds_head_max                         DOUBLE,
    holds_head_averaged_attention          DOUBLE,
    holds_multi_head_bound                 DOUBLE,
    holds_gaussian                         DOUBLE,
    holds_contraction                      DOUBLE,
    PRIMARY KEY (audit_id, corpus, layer)
);

CREATE TABLE layer_head_stat (
    audit_id                               VARCHAR NOT NULL,
    corpus                                 VARCHAR NOT NULL,
    layer                                  INTEGER NOT NULL,
    head                                   INTEGER NOT NULL,
    lambda_mean                            DOUBLE NOT NULL,
    attention_spread                       DOUBLE NOT NULL,
    sigma_a                                DOUBLE NOT NULL,
    sigma_a_max                            DOUBLE NOT NULL,
    value_output_norm                      DOUBLE NOT NULL,
    value_norm                             DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, layer, head)
);

-- ---- Length collapse (arXiv 2410.24200) ----

CREATE TABLE length_bin (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    condition                    VARCHAR NOT NULL,
    low                          INTEGER NOT NULL,
    high                         INTEGER NOT NULL,
    length                       DOUBLE NOT NULL,
    beyond_limit                 BOOLEAN NOT NULL,
    texts                        INTEGER NOT NULL,
    cosine_mean                  DOUBLE,
    cosine_low                   DOUBLE,
    cosine_high                  DOUBLE,
    PRIMARY KEY (audit_id, corpus, condition, low)
);

CREATE TABLE length_rise (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    condition                    VARCHAR NOT NULL,
    first_length                 DOUBLE,
    last_length                  DOUBLE,
    first_cosine                 DOUBLE,
    last_cosine                  DOUBLE,
    rise                         DOUBLE,
    share_of_natural             DOUBLE,
    share_of_truncation          DOUBLE,
    share_of_truncation_low      DOUBLE,
    share_of_truncation_high     DOUBLE,
    PRIMARY KEY (audit_id, corpus, condition)
);

CREATE TABLE length_summary (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    corpus_id                    VARCHAR NOT NULL,
    texts                        INTEGER NOT NULL,
    empty                        INTEGER NOT NULL,
    read_limit                   INTEGER NOT NULL,
    configured_limit             INTEGER NOT NULL,
    position_limit               INTEGER,
    beyond_configured            INTEGER NOT NULL,
    beyond_read                  INTEGER NOT NULL,
    control_texts                INTEGER NOT NULL,
    "window"                     INTEGER NOT NULL,
    tokens_mean                  DOUBLE,
    tokens_median                DOUBLE,
    tokens_max                   INTEGER,
    neighbours                   INTEGER NOT NULL,
    is_labelled                  BOOLEAN NOT NULL,
    hubness_spearman             DOUBLE,
    hubness_p                    DOUBLE,
    neighbour_length_ratio       DOUBLE,
    short_neighbour_length_ratio DOUBLE,
    rank_spearman                DOUBLE,
    knn_accuracy                 DOUBLE,
    wrong_length_ratio           DOUBLE,
    long_pairs                   BIGINT NOT NULL,
    long_pairs_mean              DOUBLE,
    short_pairs_mean             DOUBLE,
    share_long_above             DOUBLE,
    PRIMARY KEY (audit_id, corpus)
);

CREATE TABLE length_pair (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    rank                         INTEGER NOT NULL,
    first                        BIGINT NOT NULL,
    second                       BIGINT NOT NULL,
    first_tokens                 INTEGER NOT NULL,
    second_tokens                INTEGER NOT NULL,
    first_label                  VARCHAR,
    second_label                 VARCHAR,
    cosine                       DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, rank)
);

CREATE TABLE length_sigma (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    layer                        INTEGER NOT NULL,
    head                         INTEGER NOT NULL,
    length                       INTEGER NOT NULL,
    tokens                       INTEGER NOT NULL,
    texts                        INTEGER NOT NULL,
    is_causal                    BOOLEAN NOT NULL,
    sigma_a                      DOUBLE NOT NULL,
    frobenius                    DOUBLE NOT NULL,
    sigma_s                      DOUBLE,
    sigma_s_centred              DOUBLE,
    bound                        DOUBLE,
    bound_centred                DOUBLE,
    holds                        DOUBLE,
    holds_centred                DOUBLE,
    sigma_a_value_norm           DOUBLE NOT NULL,
    hc_energy                    DOUBLE,
    PRIMARY KEY (audit_id, corpus, layer, head, length)
);

-- ---- Does a lower attention temperature help, and what chunking, whitening and centring do instead ----

CREATE TABLE tempscale (
    audit_id        VARCHAR NOT NULL,
    task            VARCHAR NOT NULL,
    arm             VARCHAR NOT NULL,
    tau             DOUBLE NOT NULL,
    split           VARCHAR NOT NULL,
    bin             INTEGER NOT NULL,
    bin_low         BIGINT,
    bin_high        BIGINT,
    items           BIGINT NOT NULL,
    units           BIGINT NOT NULL,
    score           DOUBLE,
    difference      DOUBLE,
    low             DOUBLE,
    high            DOUBLE,
    corpus          VARCHAR NOT NULL,
    corpus_id       VARCHAR NOT NULL,
    reads           VARCHAR NOT NULL,
    max_tokens      INTEGER NOT NULL,
    PRIMARY KEY (audit_id, task, arm, tau, split, bin)
);

CREATE TABLE tempscale_choice (
    audit_id        VARCHAR NOT NULL,
    task            VARCHAR NOT NULL,
    bin             INTEGER NOT NULL,
    bin_low         BIGINT,
    bin_high        BIGINT,
    tau             DOUBLE,
    recommendation  VARCHAR NOT NULL,
    items           BIGINT NOT NULL,
    units           BIGINT NOT NULL,
    score_before    DOUBLE,
    score_after     DOUBLE,
    difference      DOUBLE,
    low             DOUBLE,
    high            DOUBLE,
    reason          VARCHAR NOT NULL,
    corpus          VARCHAR NOT NULL,
    corpus_id       VARCHAR NOT NULL,
    reads           VARCHAR NOT NULL,
    max_tokens      INTEGER NOT NULL,
    PRIMARY KEY (audit_id, task, bin)
);

-- ---- Watches and gates ----

CREATE TABLE watched_revision (
    source            VARCHAR NOT NULL,
    revision          VARCHAR NOT NULL,
    parameters_key    VARCHAR NOT NULL,
    parameters        JSON NOT NULL,
    checkpoint_id     VARCHAR,
    status            VARCHAR NOT NULL,
    reason            VARCHAR,
    audit_id          VARCHAR,
    first_seen        TIMESTAMPTZ NOT NULL,
    last_seen         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (source, revision, parameters_key)
);

CREATE TABLE regression (
    audit_id             VARCHAR NOT NULL,
    predecessor_audit_id VARCHAR NOT NULL,
    summary              VARCHAR NOT NULL,
    item                 VARCHAR NOT NULL,
    measure              VARCHAR NOT NULL,
    value                DOUBLE NOT NULL,
    predecessor_value    DOUBLE NOT NULL,
    delta                DOUBLE NOT NULL,
    relative_change      DOUBLE,
    worse_when           VARCHAR,
    tolerance            DOUBLE,
    is_worse             BOOLEAN NOT NULL,
    PRIMARY KEY (audit_id, predecessor_audit_id, summary, item, measure)
);

CREATE TABLE gate_result (
    audit_id          VARCHAR NOT NULL,
    policy            VARCHAR NOT NULL,
    policy_hash       VARCHAR NOT NULL,
    baseline_audit_id VARCHAR NOT NULL,
    rule              VARCHAR NOT NULL,
    kind              VARCHAR NOT NULL,
    summary           VARCHAR NOT NULL,
    item              VARCHAR NOT NULL,
    measure           VARCHAR NOT NULL,
    value             DOUBLE,
    lowest            DOUBLE,
    highest           DOUBLE,
    baseline_value    DOUBLE,
    change            DOUBLE,
    observed          VARCHAR NOT NULL,
    outcome           VARCHAR NOT NULL,
    trips             BOOLEAN NOT NULL,
    reason            VARCHAR NOT NULL,
    evaluated         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (audit_id, policy_hash, baseline_audit_id, rule, summary, item, measure)
);

-- ---- Figures that papers published, and downstream scores that a person imports ----

-- Facts of the papers, to stand beside an audit's own figures, never of this program. Their rows come last.
CREATE TABLE published_figure (
    checkpoint        VARCHAR NOT NULL,      -- hub id, or the name that the paper uses
    measure           VARCHAR NOT NULL,      -- socm_mean, u, reference_scanned, reference_candidates, reference_sticky, reference_cutoff
    corpus            VARCHAR NOT NULL,      -- as embaudit calls it; '' where the figure is of no corpus
    value             DOUBLE NOT NULL,
    source            VARCHAR NOT NULL,
    PRIMARY KEY (checkpoint, measure, corpus)
);

-- One score of one checkpoint on one part of a task (MTEB's words: split and subset).
CREATE TABLE downstream_score (
    checkpoint        VARCHAR NOT NULL,      -- as the file names it
    revision          VARCHAR NOT NULL,      -- '' where the file names none
    task              VARCHAR NOT NULL,
    split             VARCHAR NOT NULL,      -- test where the file names none
    subset            VARCHAR NOT NULL,      -- default where the file names none
    score             DOUBLE NOT NULL,
    metric            VARCHAR,               -- main_score where MTEB's file does not name it
    origin            VARCHAR NOT NULL,      -- the file
    imported          TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (checkpoint, revision, task, split, subset)
);

-- Average SOCM: 1 000 Wikipedia sentences, 1 000 MS MARCO passages, 50 000 queries with a hard negative.
INSERT INTO published_figure
SELECT checkpoint, 'socm_mean', corpus, value, 'arXiv 2604.27398'
FROM (
    UNPIVOT (
        SELECT * FROM (VALUES
            ('bert-base-uncased', 0.396, 0.491, 0.480),
            ('h-tomo/unsup-simcse-bert-base-uncased-mean', 0.193, 0.269, 0.257),
            ('intfloat/e5-base-v2', 0.029, 0.043, 0.036),
            ('thenlper/gte-base', 0.018, 0.025, 0.017),
            ('microsoft/MiniLM-L12-H384-uncased', 0.242, 0.289, 0.340),
            ('sentence-transformers/all-MiniLM-L12-v2', 0.313, 0.348, 0.330),
            ('intfloat/e5-small-v2', 0.099, 0.085, 0.087),
            ('thenlper/gte-small', 0.055, 0.055, 0.048),
            ('microsoft/mpnet-base', 0.117, 0.106, 0.129),
            ('sentence-transformers/all-mpnet-base-v2', 0.100, 0.094, 0.093),
            ('nomic-ai/nomic-bert-2048', 0.139, 0.110, 0.131),
            ('nomic-ai/nomic-embed-text-v1.5', 0.122, 0.133, 0.104)
        ) AS published (checkpoint, wikipedia, msmarco, "msmarco-hard-negatives")
    ) ON COLUMNS(* EXCLUDE (checkpoint)) INTO NAME corpus VALUE value
) AS figure;

-- Spearman's rho with the score on MTEB (eng, v2), over all twelve.
INSERT INTO published_figure VALUES
    ('(12 checkpoints)', 'spearman_socm', '', -0.678, 'arXiv 2604.27398: MTEB (eng, v2), p = 0.015, n = 12'),
    ('(12 checkpoints)', 'spearman_spread', '', -0.622, 'arXiv 2604.27398: MTEB (eng, v2), n = 12');

-- Sticky tokens by the published code: u, tokens that pass its filter, shortlist, what its threshold flags, the shortlist's cutoff.
INSERT INTO published_figure
SELECT checkpoint, measure, '', value, 'arXiv 2507.18171'
FROM (
    UNPIVOT (
        SELECT * FROM (VALUES
            ('sentence-transformers/sentence-t5-base', 0.7959210872650146::DOUBLE, 32097::DOUBLE, 642::DOUBLE, 21::DOUBLE, 56.085167079999984::DOUBLE),
            ('sentence-transformers/sentence-t5-large', 0.7633505463600159, 32097, 642, 30, 49.076264639999984),
            ('sentence-transformers/all-MiniLM-L6-v2', 0.1998460739850998, 23699, 474, 21, 49.204199200000005),
            ('BAAI/bge-base-en-v1.5', 0.5253965854644775, 23699, 474, 20, 33.748423280000004),
            ('BAAI/bge-small-en-v1.5', 0.5693618655204773, 23699, 474, 18, 57.65861280000001),
            ('sentence-transformers/all-mpnet-base-v2', 0.18763725459575653, 23700, 474, 24, 22.803800880000004),
            ('sentence-transformers/sentence-t5-xl', 0.7167261242866516, 32097, 642, 34, 28.52821592),
            ('intfloat/e5-small', 0.8306435346603394, 23699, 474, 17, 31.177416640000033),
            ('intfloat/e5-base', 0.7430481314659119, 23699, 474, 11, 38.23797840000001),
            ('intfloat/e5-large', 0.7311262488365173, 23699, 474, 21, 27.73838624),
            ('BAAI/bge-large-en-v1.5', 0.5716012716293335, 23699, 474, 15, 28.019785360000004),
            ('sentence-transformers/gtr-t5-base', 0.515497624874115, 32097, 642, 16, 42.89543456),
            ('thenlper/gte-base', 0.7647284269332886, 23699, 474, 18, 45.630350240000006),
            ('thenlper/gte-small', 0.7874081134796143, 23699, 474, 15, 51.899770800000006),
            ('Alibaba-NLP/gte-base-en-v1.5', 0.3730173707008362, 23699, 474, 20, 20.26227416000001),
            ('sentence-transformers/gtr-t5-large', 0.5576757788658142, 32097, 642, 14, 42.8975686),
            ('thenlper/gte-large', 0.778849720954895, 23699, 474, 18, 50.856194000000016),
            ('Alibaba-NLP/gte-large-en-v1.5', 0.5389794111251831, 23699, 474, 17, 41.76180748),
            ('sentence-transformers/gtr-t5-xl', 0.48241105675697327, 32097, 642, 15, 34.81474339999998),
            ('GritLM/GritLM-7B', 0.6271421313285828, 31747, 635, 17, 45.52804216),
            ('sentence-transformers/sentence-t5-xxl', 0.7361505031585693, 32097, 642, 22, 33.405789559999974),
            ('princeton-nlp/sup-simcse-bert-base-uncased', 0.5866492390632629, 23699, 474, 22, 36.05251384000002),
            ('princeton-nlp/sup-simcse-bert-large-uncased', 0.4512394964694977, 23699, 474, 11, 49.98127328),
            ('princeton-nlp/sup-simcse-roberta-base', 0.8783459067344666, 49894, 998, 27, 30.05448302),
            ('princeton-nlp/sup-simcse-roberta-large', 0.4994933307170868, 49894, 998, 25, 34.98779733999999),
            ('sentence-transformers/gtr-t5-xxl', 0.477371484041214, 32097, 642, 7, 31.42300628),
            ('intfloat/e5-mistral-7b-instruct', 0.73544925, 31747, 635, 31, 47.297),
            ('nomic-ai/nomic-embed-text-v1.5', 0.41667187213897705, 23699, 474, 9, 43.047631120000005),
            ('nomic-ai/nomic-embed-text-v1', 0.3359900414943695, 23699, 474, 12, 35.63078936),
            ('Salesforce/SFR-Embedding-Mistral', 0.6806461215019226, 31716, 635, 46, 41.0228861),
            ('Salesforce/SFR-Embedding-2_R', 0.7264263033866882, 31716, 444, 2, 21.3491443),
            ('hkunlp/instructor-base', 0.8372758626937866, 32097, 642, 12, 53.60806064),
            ('Alibaba-NLP/gte-Qwen2-7B-instruct', 0.25938424468040466, 147848, 2957, 103, 19.584761439999994),
            ('Alibaba-NLP/gte-Qwen2-1.5B-instruct', 0.35099348425865173, 147848, 2326, 5, 20.172669219999978),
            ('WhereIsAI/UAE-Large-V1', 0.5052046179771423, 23699, 474, 14, 22.126666480000004),
            ('hkunlp/instructor-xl', 0.5544099807739258, 32097, 642, 8, 59.36185648),
            ('hkunlp/instructor-large', 0.8144151568412781, 32097, 642, 32, 45.112504039999976),
            ('jinaai/jina-embeddings-v3', 0.5281136499882918, 249976, 5000, 40, 35.181472),
            ('HIT-TMG/KaLM-embedding-multilingual-mini-instruct-v1', 0.8565026845860017, 147848, 2957, 27, 69.97700201999999),
            ('HIT-TMG/KaLM-embedding-multilingual-mini-instruct-v1.5', 0.8523245180666349, 147848, 2957, 31, 46.08824766)
        ) AS published (checkpoint, u, reference_scanned, reference_candidates, reference_sticky, reference_cutoff)
    ) ON COLUMNS(* EXCLUDE (checkpoint)) INTO NAME measure VALUE value
) AS figure;
