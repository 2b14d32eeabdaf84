-- Sticky tokens on many anchors: which sentences, how reliable, how well predicted, and how many tokens are how bad.

CREATE TABLE sticky_sentence (
    audit_id VARCHAR NOT NULL,
    purpose  VARCHAR NOT NULL,
    role     VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    sentence VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, purpose, role, position)
);

CREATE TABLE sticky_severity (
    audit_id       VARCHAR NOT NULL,
    severity       VARCHAR NOT NULL,
    least_loss     DOUBLE NOT NULL,
    validated      INTEGER NOT NULL,
    confirmed      INTEGER NOT NULL,
    estimated      DOUBLE,
    estimated_low  DOUBLE,
    estimated_high DOUBLE,
    is_capped      BOOLEAN NOT NULL,
    PRIMARY KEY (audit_id, severity)
);

ALTER TABLE sticky_summary RENAME COLUMN scoring_pairs TO draws;
ALTER TABLE sticky_summary RENAME COLUMN validation_pairs TO validation_anchors;
ALTER TABLE sticky_summary RENAME COLUMN pairs_below_u TO points_below_u;
ALTER TABLE sticky_summary DROP COLUMN threshold_points;
ALTER TABLE sticky_summary ADD COLUMN searched INTEGER;
ALTER TABLE sticky_summary ADD COLUMN anchors INTEGER;
ALTER TABLE sticky_summary ADD COLUMN validation_draws INTEGER;
ALTER TABLE sticky_summary ADD COLUMN reliability_low DOUBLE;
ALTER TABLE sticky_summary ADD COLUMN reliability_high DOUBLE;
ALTER TABLE sticky_summary ADD COLUMN prediction DOUBLE;
ALTER TABLE sticky_summary ADD COLUMN prediction_low DOUBLE;
ALTER TABLE sticky_summary ADD COLUMN prediction_high DOUBLE;
