-- A fine-tuned checkpoint compared with its backbone: every summary figure that both audits have, and the difference.
CREATE OR REPLACE VIEW backbone_delta AS
SELECT
    link.audit_id,
    link.backbone_audit_id,
    coalesce(own_audit.settings ->> '$.source', own_checkpoint.source) AS source,
    coalesce(other_audit.settings ->> '$.source', other_checkpoint.source) AS backbone,
    own.summary,
    own.item,
    own.measure,
    own.value,
    other.value AS backbone_value,
    own.value - other.value AS delta
FROM audit_backbone AS link
JOIN summary_figure AS own ON own.audit_id = link.audit_id
JOIN summary_figure AS other
    ON other.audit_id = link.backbone_audit_id
    AND other.summary = own.summary AND other.item = own.item AND other.measure = own.measure
JOIN audit AS own_audit ON own_audit.audit_id = link.audit_id
JOIN audit AS other_audit ON other_audit.audit_id = link.backbone_audit_id
LEFT JOIN checkpoint AS own_checkpoint ON own_checkpoint.checkpoint_id = own_audit.checkpoint_id
LEFT JOIN checkpoint AS other_checkpoint ON other_checkpoint.checkpoint_id = other_audit.checkpoint_id;
