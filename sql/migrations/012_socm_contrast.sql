-- Hard negatives against random pairs of the same texts, and SIF pooling without the common component.

CREATE TABLE socm_contrast (
    audit_id        VARCHAR NOT NULL,
    corpus          VARCHAR NOT NULL,
    distance        VARCHAR NOT NULL,
    pairs           INTEGER NOT NULL,
    queries         INTEGER NOT NULL,
    listed_mean     DOUBLE NOT NULL,
    random_mean     DOUBLE NOT NULL,
    difference      DOUBLE NOT NULL,
    difference_low  DOUBLE,
    difference_high DOUBLE,
    PRIMARY KEY (audit_id, corpus, distance)
);

ALTER TABLE socm_tightness ADD COLUMN d_mu_sif_removed DOUBLE;
ALTER TABLE socm_tightness ADD COLUMN d_sigma_sif_removed DOUBLE;
ALTER TABLE socm_tightness ADD COLUMN socm_sif_removed DOUBLE;
