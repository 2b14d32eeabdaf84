-- 010: which revisions a watch has seen and what became of them, and what got worse from one to the next.

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
