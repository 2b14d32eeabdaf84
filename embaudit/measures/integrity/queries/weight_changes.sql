-- Which layers' weights changed from one revision to the next, and did any that a vector depends on?
SELECT
    coalesce(audit.settings ->> '$.source', '') AS source, weight_change.audit_id, layer, is_read, tensors, changed,
    predecessor_audit_id
FROM weight_change
LEFT JOIN audit USING (audit_id)
ORDER BY audit.finished DESC NULLS LAST, weight_change.audit_id, predecessor_audit_id, is_read DESC, layer NULLS FIRST;
