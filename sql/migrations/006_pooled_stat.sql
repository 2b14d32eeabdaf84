-- The token states that pooling averages: behind the final norm, where a model ends with one.

CREATE TABLE pooled_stat (
    audit_id                   VARCHAR NOT NULL,
    corpus                     VARCHAR NOT NULL,
    corpus_id                  VARCHAR NOT NULL,
    texts                      INTEGER NOT NULL,
    has_final_norm             BOOLEAN NOT NULL,
    normalised_spread          DOUBLE,
    normalised_spread_low      DOUBLE,
    normalised_spread_high     DOUBLE,
    within_text_cosine         DOUBLE,
    within_text_cosine_low     DOUBLE,
    within_text_cosine_high    DOUBLE,
    normalised_spread_of_means DOUBLE,
    PRIMARY KEY (audit_id, corpus)
);

-- Post-norm models have no final norm: earlier audits measured their pooled states as the last layer's output.
INSERT INTO pooled_stat
SELECT
    audit_id, corpus, corpus_id, texts, false, normalised_spread, normalised_spread_low, normalised_spread_high,
    within_text_cosine, within_text_cosine_low, within_text_cosine_high, normalised_spread_of_means
FROM layer_stat
WHERE norm_placement = 'post'
QUALIFY layer = max(layer) OVER (PARTITION BY audit_id, corpus);
