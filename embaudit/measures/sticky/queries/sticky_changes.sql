-- Which tokens became sticky, or ceased to be, from one revision to the next?
SELECT
    coalesce(audit.settings ->> '$.source', '') AS source, sticky_change.audit_id, change, token, script,
    round(predecessor_loss, 3) AS before, round(loss, 3) AS loss, predecessor_severity, severity
FROM sticky_change
LEFT JOIN audit USING (audit_id)
ORDER BY audit.finished DESC NULLS LAST, sticky_change.audit_id, change, coalesce(loss, predecessor_loss) DESC, token, predecessor_audit_id;
