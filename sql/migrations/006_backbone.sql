-- 006: which audit of a backbone an audit is compared with; the deltas are the view backbone_delta.

CREATE TABLE audit_backbone (
    audit_id          VARCHAR NOT NULL,      -- of the fine-tuned checkpoint
    backbone_audit_id VARCHAR NOT NULL,
    PRIMARY KEY (audit_id, backbone_audit_id)
);
