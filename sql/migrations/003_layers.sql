-- 003: concentration layer by layer (arXiv 2604.27398, section 6; sigma_a of arXiv 2410.24200).

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
