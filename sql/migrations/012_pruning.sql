-- 012: which rows of which audit maintenance has deleted; summaries and the log never are.

CREATE TABLE pruning (
    audit_id          VARCHAR NOT NULL,
    table_name        VARCHAR NOT NULL,
    rows              BIGINT NOT NULL,       -- that were deleted
    reason            VARCHAR NOT NULL,      -- the rule, in words
    pruned            TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (audit_id, table_name, pruned)
);
