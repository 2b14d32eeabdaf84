-- 001: all tables. Once this is released, a change is a file with the next number.

-- ---- Checkpoints, audits and their log ----

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

-- Which audit of a backbone an audit is compared with; the deltas are the view backbone_delta.
CREATE TABLE audit_backbone (
    audit_id          VARCHAR NOT NULL,      -- of the fine-tuned checkpoint
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

-- ---- The vocabulary and sticky tokens (arXiv 2507.18171) ----

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
    is_pilot          BOOLEAN,               -- one of the random tokens that got all draws
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
    verdict           VARCHAR,               -- sticky | not_sticky | no_threshold | not_shortlisted (the other protocol's candidate); null for controls
    basis             VARCHAR NOT NULL,      -- screened | validated
    shift             DOUBLE,                -- mean of Sim after - Sim before
    compression       DOUBLE,                -- SD of Sim after / SD of Sim before
    near_u_05         DOUBLE,                -- share of points with |Sim - u| <= 0.05
    near_u_10         DOUBLE,                -- ... <= 0.1
    p_value           DOUBLE,                -- H0: no more extreme than the controls' 95th percentile
    q_value           DOUBLE,                -- Benjamini-Hochberg over the protocol's candidates
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
    search              VARCHAR,             -- sequential | exhaustive
    pilot               INTEGER,             -- random tokens that got all draws
    exhaustive_encodes  BIGINT,              -- what the same tokens would take without any saving
    scan_dtype          VARCHAR,             -- precision of the scan
    rank_correlation    DOUBLE,              -- Spearman, scan's precision against float32; null: float32
    pilot_shortlisted   INTEGER,             -- of the pilot, on the shortlist by all draws
    pilot_missed        INTEGER,             -- of those, how many the search would have dropped
    miss_rate           DOUBLE,              -- pilot_missed / pilot_shortlisted
    miss_low            DOUBLE,              -- 95 % Clopper-Pearson
    miss_high           DOUBLE,
    threshold_points    INTEGER,             -- common points that the threshold's quartiles rest on
    validation_points   INTEGER,             -- points of a token that went all the way
    near_u_05_before    DOUBLE,              -- share of points near u without insertion
    near_u_10_before    DOUBLE,
    PRIMARY KEY (audit_id, protocol)
);

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

-- ---- SOCM: what mean pooling throws away (arXiv 2604.27398) ----

-- A text whose tokens average to nothing has no trace, and takes part in no pair.
CREATE TABLE socm_text (
    audit_id            VARCHAR NOT NULL,
    corpus              VARCHAR NOT NULL,
    corpus_id           VARCHAR NOT NULL,
    position            BIGINT NOT NULL,
    tokens              INTEGER NOT NULL,    -- n, special tokens included
    mean_norm           DOUBLE NOT NULL,     -- length of the mean before scaling
    trace_sigma         DOUBLE,
    exceeds_trace_bound BOOLEAN,             -- tr > 2: SOCM may leave [0, 1]
    is_truncated        BOOLEAN NOT NULL,
    is_undefined        BOOLEAN,
    mean_cosine         DOUBLE,              -- (1/n^2) sum of cos(x_j, x_k); null: a token without direction
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

-- Pairs of a list (a query with its hard negative). Distinct texts are numbered as they appear, firsts and seconds alike.
CREATE TABLE socm_listed_pair (
    audit_id          VARCHAR NOT NULL,
    corpus            VARCHAR NOT NULL,
    position          BIGINT NOT NULL,       -- in the list (text_pair.position)
    first             INTEGER NOT NULL,      -- position of the text in socm_text
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
    pair_kind               VARCHAR,          -- all | listed
    undefined               INTEGER,          -- texts left out: their tokens average to nothing
    one_token               INTEGER,          -- texts of one token: no spread
    truncated               INTEGER,          -- texts cut to the checkpoint's limit
    socm_q01                DOUBLE,           -- quantiles over pairs, to 1e-4 of their value
    socm_q05                DOUBLE,
    socm_q25                DOUBLE,
    socm_q50                DOUBLE,
    socm_q75                DOUBLE,
    socm_q95                DOUBLE,
    socm_q99                DOUBLE,
    share_cosine_above_bound DOUBLE,          -- of texts, mean cosine >= 1/3 (Appendix J)
    share_bounds_agree      DOUBLE,           -- of texts, (mean cosine >= 1/3) = (tr <= 2)
    method                  VARCHAR,          -- of the nuclear norms: eigenvalues | polar
    accuracy                DOUBLE,           -- largest |difference of d_sigma| to float64 singular values
    checked_pairs           INTEGER,          -- random pairs of this run that it was measured on
    PRIMARY KEY (audit_id, corpus)
);

CREATE TABLE socm_surface (
    audit_id          VARCHAR NOT NULL,
    corpus            VARCHAR NOT NULL,
    alpha             DOUBLE NOT NULL,
    beta              DOUBLE NOT NULL,
    socm_mean         DOUBLE NOT NULL,       -- mean of (1 - d_mu)^alpha * d_sigma^beta
    PRIMARY KEY (audit_id, corpus, alpha, beta)
);

-- A random sample of pairs, looked at more closely.
CREATE TABLE socm_tightness (
    audit_id            VARCHAR NOT NULL,
    corpus              VARCHAR NOT NULL,
    first               INTEGER NOT NULL,    -- first < second, as in socm_pair
    second              INTEGER NOT NULL,
    d_mu                DOUBLE NOT NULL,
    d_sigma             DOUBLE NOT NULL,
    socm                DOUBLE NOT NULL,
    w2_squared          DOUBLE,              -- exact squared 2-Wasserstein distance of the token clouds
    gaussian_w2_squared DOUBLE NOT NULL,     -- 4 (d_mu + d_sigma): a lower bound of it
    d_mu_sif            DOUBLE,              -- the same pair with SIF weights instead of 1/n
    d_sigma_sif         DOUBLE,
    socm_sif            DOUBLE,
    PRIMARY KEY (audit_id, corpus, first, second)
);

-- Two texts' tokens in the plane of their first two directions (PCA without centring), for three pairs a corpus.
CREATE TABLE socm_plane (
    audit_id          VARCHAR NOT NULL,
    corpus            VARCHAR NOT NULL,
    pair              VARCHAR NOT NULL,      -- highest, median, lowest SOCM
    position          INTEGER NOT NULL,      -- of the text in its corpus
    point             INTEGER NOT NULL,      -- -1: the text's mean; from 0: its tokens
    token             VARCHAR,               -- null for the mean
    x                 DOUBLE NOT NULL,       -- tokens are scaled so that the text's mean has length 1
    y                 DOUBLE NOT NULL,
    socm              DOUBLE NOT NULL,       -- of the pair
    share             DOUBLE NOT NULL,       -- of the tokens' squared length, what the plane keeps
    PRIMARY KEY (audit_id, corpus, pair, position, point)
);

-- ---- Concentration layer by layer (arXiv 2604.27398, section 6; sigma_a of arXiv 2410.24200) ----

-- One text in one layer; every value is null where it is undefined (0/0). Texts of one token have no rows.
CREATE TABLE layer_text (
    audit_id                               VARCHAR NOT NULL,
    corpus                                 VARCHAR NOT NULL,
    position                               BIGINT NOT NULL,
    layer                                  INTEGER NOT NULL,  -- 0 is the first
    tokens                                 INTEGER NOT NULL,  -- n, special tokens included
    lambda_head_mean                       DOUBLE,            -- lambda_h of each head, averaged over heads
    lambda_head_max                        DOUBLE,            -- the largest lambda_h
    lambda_head_averaged_attention         DOUBLE,            -- head-averaged A, the full W_o W_v
    lambda_multi_head_bound                DOUBLE,            -- (sum of sqrt lambda_h)^2
    lambda_gaussian                        DOUBLE,            -- exact for H with independent Gaussian entries
    contraction                            DOUBLE,            -- S(Z)/S(H), measured
    contraction_normed                     DOUBLE,            -- S(Z)/S(norm(H)); null where attention reads H itself
    r                                      DOUBLE,            -- S(H)/||mu(Y)||^2
    c                                      DOUBLE,            -- [S(X)/||mu(X)||^2] / [S(Y)/||mu(Y)||^2]
    normalised_spread                      DOUBLE,            -- S(X)/||mu(X)||^2
    within_text_cosine                     DOUBLE,            -- mean cosine of all token pairs, a token with itself included
    sigma_a                                DOUBLE,            -- ||PA||_2, mean over heads
    spread_h                               DOUBLE NOT NULL,   -- S(H), the layer's input
    spread_z                               DOUBLE NOT NULL,   -- S(Z), the attention branch
    spread_y                               DOUBLE NOT NULL,   -- S(Y), Y = Z + H
    spread_x                               DOUBLE NOT NULL,   -- S(X), the layer's output
    mean_norm_y                            DOUBLE NOT NULL,   -- ||mu(Y)||
    mean_norm_x                            DOUBLE NOT NULL,   -- ||mu(X)||
    PRIMARY KEY (audit_id, corpus, position, layer)
);

-- One layer over a corpus: means over texts with Student's 95 % interval, and ratios of means beside them.
CREATE TABLE layer_stat (
    audit_id                               VARCHAR NOT NULL,
    corpus                                 VARCHAR NOT NULL,
    corpus_id                              VARCHAR NOT NULL,
    layer                                  INTEGER NOT NULL,
    family                                 VARCHAR NOT NULL,  -- of the anatomy
    norm_placement                         VARCHAR NOT NULL,  -- post, pre, sandwich, parallel: but for post, attention reads norm(H)
    shares_weights                         BOOLEAN NOT NULL,  -- one layer's weights serve several layers
    texts                                  INTEGER NOT NULL,  -- of two tokens and more
    undefined                              INTEGER NOT NULL,  -- texts of one token or none
    truncated                              INTEGER NOT NULL,  -- texts cut to the checkpoint's limit
    tokens_mean                            DOUBLE NOT NULL,
    value_output_norm                      DOUBLE NOT NULL,   -- ||W_o W_v||_op, a constant of the checkpoint
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
    contraction_of_means                   DOUBLE,            -- ratio of means over texts: the definitions are ratios of expectations
    r_of_means                             DOUBLE,
    c_of_means                             DOUBLE,
    normalised_spread_of_means             DOUBLE,
    holds_head_mean                        DOUBLE,            -- share of texts with S(X)/||mu(X)||^2 <= C(1+sqrt(lambda))^2 r
    holds_head_max                         DOUBLE,
    holds_head_averaged_attention          DOUBLE,
    holds_multi_head_bound                 DOUBLE,
    holds_gaussian                         DOUBLE,
    holds_contraction                      DOUBLE,            -- must be 1: the triangle inequality
    PRIMARY KEY (audit_id, corpus, layer)
);

CREATE TABLE layer_head_stat (
    audit_id                               VARCHAR NOT NULL,
    corpus                                 VARCHAR NOT NULL,
    layer                                  INTEGER NOT NULL,
    head                                   INTEGER NOT NULL,
    lambda_mean                            DOUBLE NOT NULL,   -- lambda_h, mean over texts
    attention_spread                       DOUBLE NOT NULL,   -- ||PA_h||_F^2/(n-1), mean over texts
    sigma_a                                DOUBLE NOT NULL,   -- ||PA_h||_2, mean over texts
    sigma_a_max                            DOUBLE NOT NULL,
    value_output_norm                      DOUBLE NOT NULL,   -- ||W_o^h W_v^h||_op
    value_norm                             DOUBLE NOT NULL,   -- ||W_v^h||_op
    PRIMARY KEY (audit_id, corpus, layer, head)
);

-- ---- Length collapse (arXiv 2410.24200) ----

-- Lengths are a text's own tokens, before truncation; special tokens come on top.
CREATE TABLE length_bin (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    condition                    VARCHAR NOT NULL,  -- natural, truncation, windows, input_embeddings
    low                          INTEGER NOT NULL,  -- of the bin [low, high); the last one ends with the position table
    high                         INTEGER NOT NULL,
    length                       DOUBLE NOT NULL,   -- mean of its texts (natural), or what the controls are cut to
    beyond_limit                 BOOLEAN NOT NULL,  -- longer than the checkpoint is configured to read
    texts                        INTEGER NOT NULL,
    cosine_mean                  DOUBLE,            -- mean pairwise cosine; null below two texts
    cosine_low                   DOUBLE,            -- 95 % jackknife over texts; null below four texts
    cosine_high                  DOUBLE,
    PRIMARY KEY (audit_id, corpus, condition, low)
);

-- A condition between the first and the last bin where it has a mean.
CREATE TABLE length_rise (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    condition                    VARCHAR NOT NULL,
    first_length                 DOUBLE,            -- all null where fewer than two bins have a mean
    last_length                  DOUBLE,
    first_cosine                 DOUBLE,
    last_cosine                  DOUBLE,
    rise                         DOUBLE,            -- last_cosine - first_cosine
    share_of_natural             DOUBLE,            -- rise / the natural curve's, over the bins that both have; null without a rise
    share_of_truncation          DOUBLE,            -- rise / that of truncations of the same texts
    share_of_truncation_low      DOUBLE,            -- 95 % jackknife over the texts
    share_of_truncation_high     DOUBLE,
    PRIMARY KEY (audit_id, corpus, condition)
);

CREATE TABLE length_summary (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    corpus_id                    VARCHAR NOT NULL,
    texts                        INTEGER NOT NULL,  -- of one token and more
    empty                        INTEGER NOT NULL,  -- texts without a token
    read_limit                   INTEGER NOT NULL,  -- own tokens that were read of a text
    configured_limit             INTEGER NOT NULL,  -- that the checkpoint reads as deployed
    position_limit               INTEGER,           -- of the position table; null where there is none
    beyond_configured            INTEGER NOT NULL,  -- texts longer than configured_limit
    beyond_read                  INTEGER NOT NULL,  -- texts longer than read_limit: not on the natural curve
    control_texts                INTEGER NOT NULL,
    "window"                     INTEGER NOT NULL,  -- tokens of a window
    tokens_mean                  DOUBLE,
    tokens_median                DOUBLE,
    tokens_max                   INTEGER,
    neighbours                   INTEGER NOT NULL,  -- k
    is_labelled                  BOOLEAN NOT NULL,  -- every text has a label, of two at least; other labels are unrelated
    hubness_spearman             DOUBLE,            -- length against how many texts have it among their k nearest
    hubness_p                    DOUBLE,
    neighbour_length_ratio       DOUBLE,            -- mean length of neighbours / of texts
    short_neighbour_length_ratio DOUBLE,            -- the same for the neighbours of the shortest third
    rank_spearman                DOUBLE,            -- length against mean rank among unrelated texts; negative: long ones rank high
    knn_accuracy                 DOUBLE,            -- of the k neighbours' vote; null without labels
    wrong_length_ratio           DOUBLE,            -- mean length of neighbours with another label / with the same
    long_pairs                   BIGINT NOT NULL,   -- unrelated pairs in the longest third of the texts
    long_pairs_mean              DOUBLE,            -- their mean cosine
    short_pairs_mean             DOUBLE,            -- that of the shortest third
    share_long_above             DOUBLE,            -- long pairs above the 95th percentile of short pairs; .05 if length did nothing
    PRIMARY KEY (audit_id, corpus)
);

-- The unrelated pairs of long texts that score highest.
CREATE TABLE length_pair (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    rank                         INTEGER NOT NULL,  -- 1 is the highest
    first                        BIGINT NOT NULL,   -- positions in the corpus
    second                       BIGINT NOT NULL,
    first_tokens                 INTEGER NOT NULL,
    second_tokens                INTEGER NOT NULL,
    first_label                  VARCHAR,
    second_label                 VARCHAR,
    cosine                       DOUBLE NOT NULL,
    PRIMARY KEY (audit_id, corpus, rank)
);

-- One head at one length, on truncations of the same texts: means over texts, shares of texts.
CREATE TABLE length_sigma (
    audit_id                     VARCHAR NOT NULL,
    corpus                       VARCHAR NOT NULL,
    layer                        INTEGER NOT NULL,  -- 0 is the first
    head                         INTEGER NOT NULL,
    length                       INTEGER NOT NULL,  -- own tokens
    tokens                       INTEGER NOT NULL,  -- n, special tokens included
    texts                        INTEGER NOT NULL,
    is_causal                    BOOLEAN NOT NULL,  -- rows of A are over prefixes: the theory does not cover it
    sigma_a                      DOUBLE NOT NULL,   -- ||PA||_2
    frobenius                    DOUBLE NOT NULL,   -- ||PA||_F, always at least sigma_a
    sigma_s                      DOUBLE,            -- SD of q.k/sqrt(d_h); null where attention adds to it, norms or masks it
    sigma_s_centred              DOUBLE,            -- of the doubly centred logits; null where A has zeros
    bound                        DOUBLE,            -- the published upper bound on sigma_a at sigma_s
    bound_centred                DOUBLE,            -- at sigma_s_centred
    holds                        DOUBLE,            -- share of texts with sigma_a <= bound
    holds_centred                DOUBLE,
    sigma_a_value_norm           DOUBLE NOT NULL,   -- sigma_a ||W_v^h||_2: Theorem 2's factor
    hc_energy                    DOUBLE,            -- ||PX||_F/||X||_F of the layer's output, the same for its heads
    PRIMARY KEY (audit_id, corpus, layer, head, length)
);

-- ---- Does a lower attention temperature help, and what chunking, whitening and centring do instead ----

-- One arm on one half of one bin of lengths. Scores: accuracy (classification_*), nDCG@10 (retrieval), Spearman (sts).
CREATE TABLE tempscale (
    audit_id        VARCHAR NOT NULL,
    task            VARCHAR NOT NULL,   -- classification_knn | classification_logistic | retrieval | sts
    arm             VARCHAR NOT NULL,   -- none | temperature | chunk_average | whitening | centring
    tau             DOUBLE NOT NULL,    -- 1 for every arm but temperature
    split           VARCHAR NOT NULL,   -- choose | report; baselines were fitted on the first, and are scored on the second
    bin             INTEGER NOT NULL,   -- 0: all lengths
    bin_low         BIGINT,             -- tokens before truncation, [low, high)
    bin_high        BIGINT,             -- null: open
    items           BIGINT NOT NULL,    -- documents, queries or pairs
    units           BIGINT NOT NULL,    -- items that share a text are one: what the bootstrap draws
    score           DOUBLE,             -- null: fewer than two items, or undefined
    difference      DOUBLE,             -- to the arm none on the same items
    low             DOUBLE,             -- 95 %, paired bootstrap over units; report half, ten units and more
    high            DOUBLE,
    corpus          VARCHAR NOT NULL,
    corpus_id       VARCHAR NOT NULL,
    reads           VARCHAR NOT NULL,   -- limit: as served | positions: up to the position table
    max_tokens      INTEGER NOT NULL,   -- of a document, special tokens included
    PRIMARY KEY (audit_id, task, arm, tau, split, bin)
);

-- The answer: tau chosen on one half, its difference to tau = 1 on the other.
CREATE TABLE tempscale_choice (
    audit_id        VARCHAR NOT NULL,
    task            VARCHAR NOT NULL,
    bin             INTEGER NOT NULL,
    bin_low         BIGINT,
    bin_high        BIGINT,
    tau             DOUBLE,             -- null: nothing to choose on, or unsupported
    recommendation  VARCHAR NOT NULL,   -- yes: low > 0 | no | unsupported: this family takes no temperature
    items           BIGINT NOT NULL,    -- of the report half
    units           BIGINT NOT NULL,
    score_before    DOUBLE,             -- tau = 1, report half
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

-- Which revisions a watch has seen and what became of them.
CREATE TABLE watched_revision (
    source            VARCHAR NOT NULL,      -- owner/name, owner/name@branch, or a path, as watched
    revision          VARCHAR NOT NULL,      -- commit; of a folder its checkpoint_id; '' where none could be told
    parameters_key    VARCHAR NOT NULL,      -- of the audit's settings: other settings make a new baseline
    parameters        JSON NOT NULL,         -- of the flow audit
    checkpoint_id     VARCHAR,               -- null: it could not be read
    status            VARCHAR NOT NULL,      -- audited | unchanged | known | running | failed | unreachable
    reason            VARCHAR,
    audit_id          VARCHAR,               -- of this content under these settings
    first_seen        TIMESTAMPTZ NOT NULL,
    last_seen         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (source, revision, parameters_key)
);

-- How each figure changed from one revision to the next, and whether for the worse.
CREATE TABLE regression (
    audit_id             VARCHAR NOT NULL,
    predecessor_audit_id VARCHAR NOT NULL,
    summary              VARCHAR NOT NULL,   -- as in the view summary_figure
    item                 VARCHAR NOT NULL,
    measure              VARCHAR NOT NULL,
    value                DOUBLE NOT NULL,
    predecessor_value    DOUBLE NOT NULL,
    delta                DOUBLE NOT NULL,    -- value - predecessor_value
    relative_change      DOUBLE,             -- of the predecessor's value; null where that is 0
    worse_when           VARCHAR,            -- higher | lower; null: neither is worse
    tolerance            DOUBLE,             -- what noise explains; null without a direction
    is_worse             BOOLEAN NOT NULL,
    PRIMARY KEY (audit_id, predecessor_audit_id, summary, item, measure)
);

-- What a gate's policy said of an audit, one row a rule and figure.
CREATE TABLE gate_result (
    audit_id          VARCHAR NOT NULL,
    policy            VARCHAR NOT NULL,      -- its name
    policy_hash       VARCHAR NOT NULL,      -- 16 hex digits over what it says
    baseline_audit_id VARCHAR NOT NULL,      -- '' where nothing was compared, or there was nothing to compare with
    rule              VARCHAR NOT NULL,
    kind              VARCHAR NOT NULL,      -- limit | change | severity | require
    summary           VARCHAR NOT NULL,      -- summary, item and measure: the figure, as in summary_figure
    item              VARCHAR NOT NULL,
    measure           VARCHAR NOT NULL,
    value             DOUBLE,                -- null where it is missing
    lowest            DOUBLE,                -- what the rule allows, in the figure's units
    highest           DOUBLE,
    baseline_value    DOUBLE,
    change            DOUBLE,                -- from the baseline: in the figure's units, or relative (observed says so)
    observed          VARCHAR NOT NULL,      -- what is no number: why a figure is missing, which tokens, the profile
    outcome           VARCHAR NOT NULL,      -- passed | tripped | missing
    trips             BOOLEAN NOT NULL,      -- a missing figure may only be warned of
    reason            VARCHAR NOT NULL,      -- the rule's own
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
