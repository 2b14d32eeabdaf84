-- 008: length collapse (arXiv 2410.24200): similarity by length under four conditions, sigma_a by head and length.

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
