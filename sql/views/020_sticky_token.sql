-- Validated candidates of every published audit, one row per token: effect, severity, origin, script.
CREATE OR REPLACE VIEW sticky_token AS
SELECT
    audit.audit_id,
    audit.checkpoint_id,
    token.token_id,
    token.token,
    retention.loss,
    retention.loss_low,
    retention.loss_high,
    retention.severity,
    retention.sticks_to,
    retention.focal_point,
    retention.pull,
    retention.pull_low,
    retention.pull_high,
    retention.excess_pull,
    retention.slope,
    retention.outlier AS retention_outlier,
    definition.outlier AS definition_outlier,
    retention.basis,
    -- Older audits stored it with the summary only, or validated in the audit's own.
    coalesce(retention.dtype, (
        SELECT max(validation_dtype) FROM sticky_summary AS summary WHERE summary.audit_id = retention.audit_id
    ), audit.dtype) AS dtype,
    token.category,
    token.origin,
    token.script
FROM sticky_validation AS retention
JOIN sticky_validation AS definition USING (audit_id, token_id)
JOIN audit USING (audit_id)
JOIN token ON token.checkpoint_id = audit.checkpoint_id AND token.token_id = retention.token_id
WHERE retention.protocol = 'retention' AND definition.protocol = 'definition'
    AND retention.role = 'candidate' AND audit.status = 'published';
