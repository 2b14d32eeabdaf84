-- 004: SOCM of lists of pairs, quantiles, undefined texts, other exponents, and how tight the Gaussian view is.
-- Columns added to tables that hold rows are null there: older audits did not measure them.

-- A text whose tokens average to nothing has no trace, takes part in no pair, and does not end the audit.
ALTER TABLE socm_text ADD COLUMN is_undefined BOOLEAN;
ALTER TABLE socm_text ADD COLUMN mean_cosine DOUBLE;              -- (1/n^2) sum of cos(x_j, x_k); null: a token without direction
ALTER TABLE socm_text ALTER COLUMN trace_sigma DROP NOT NULL;
ALTER TABLE socm_text ALTER COLUMN exceeds_trace_bound DROP NOT NULL;

ALTER TABLE socm_summary ADD COLUMN pair_kind VARCHAR;            -- all | listed
ALTER TABLE socm_summary ADD COLUMN undefined INTEGER;            -- texts left out: their tokens average to nothing
ALTER TABLE socm_summary ADD COLUMN one_token INTEGER;            -- texts of one token: no spread
ALTER TABLE socm_summary ADD COLUMN truncated INTEGER;            -- texts cut to the checkpoint's limit
ALTER TABLE socm_summary ADD COLUMN socm_q01 DOUBLE;              -- quantiles over pairs, to 1e-4 of their value
ALTER TABLE socm_summary ADD COLUMN socm_q05 DOUBLE;
ALTER TABLE socm_summary ADD COLUMN socm_q25 DOUBLE;
ALTER TABLE socm_summary ADD COLUMN socm_q50 DOUBLE;
ALTER TABLE socm_summary ADD COLUMN socm_q75 DOUBLE;
ALTER TABLE socm_summary ADD COLUMN socm_q95 DOUBLE;
ALTER TABLE socm_summary ADD COLUMN socm_q99 DOUBLE;
ALTER TABLE socm_summary ADD COLUMN share_cosine_above_bound DOUBLE; -- of texts, mean cosine >= 1/3 (Appendix J)
ALTER TABLE socm_summary ADD COLUMN share_bounds_agree DOUBLE;    -- of texts, (mean cosine >= 1/3) = (tr <= 2)
ALTER TABLE socm_summary ADD COLUMN method VARCHAR;               -- of the nuclear norms: eigenvalues | polar
ALTER TABLE socm_summary ADD COLUMN accuracy DOUBLE;              -- largest |difference of d_sigma| to float64 singular values
ALTER TABLE socm_summary ADD COLUMN checked_pairs INTEGER;        -- random pairs of this run that it was measured on

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
