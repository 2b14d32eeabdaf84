-- What somebody accepted by name: rules that tripped a gate, and figures that got worse.

CREATE TABLE acceptance (
    audit_id     VARCHAR NOT NULL,
    what         VARCHAR NOT NULL,      -- gate | worse
    against      VARCHAR NOT NULL,      -- hash of the policy; the earlier audit
    item         VARCHAR NOT NULL,      -- the rule; the figure
    accepted_by  VARCHAR NOT NULL,
    reason       VARCHAR NOT NULL,
    accepted     TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (audit_id, what, against, item)
);
