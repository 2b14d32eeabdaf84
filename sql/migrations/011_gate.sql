-- 011: what a gate's policy said of an audit, one row a rule and figure.

CREATE TABLE gate_result (
    audit_id          VARCHAR NOT NULL,
    policy            VARCHAR NOT NULL,      -- its name
    policy_hash       VARCHAR NOT NULL,      -- 16 hex digits over what it says
    baseline_audit_id VARCHAR NOT NULL,      -- '' where nothing was compared, or there was nothing to compare with
    rule              VARCHAR NOT NULL,
    kind              VARCHAR NOT NULL,      -- limit | change | severity | require
    summary           VARCHAR NOT NULL,      -- summary, item and measure: the figure, as in summary_figure
    item              VARCHAR NOT NULL,
    measure           VARCHAR NOT NULL,
    value             DOUBLE,                -- null where it is missing
    lowest            DOUBLE,                -- what the rule allows, in the figure's units
    highest           DOUBLE,
    baseline_value    DOUBLE,
    change            DOUBLE,                -- from the baseline: in the figure's units, or relative (observed says so)
    observed          VARCHAR NOT NULL,      -- what is no number: why a figure is missing, which tokens, the profile
    outcome           VARCHAR NOT NULL,      -- passed | tripped | missing
    trips             BOOLEAN NOT NULL,      -- a missing figure may only be warned of
    reason            VARCHAR NOT NULL,      -- the rule's own
    evaluated         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (audit_id, policy_hash, baseline_audit_id, rule, summary, item, measure)
);
