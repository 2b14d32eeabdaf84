-- 007: two texts' tokens in the plane of their first two directions (PCA without centring), for three pairs a corpus.

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
