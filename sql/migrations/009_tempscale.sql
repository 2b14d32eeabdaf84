-- 009: does a lower attention temperature help this checkpoint, and what chunking, whitening and centring do instead.

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
