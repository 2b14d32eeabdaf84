-- What got worse from one revision to the next?
SELECT
    coalesce(audit.settings ->> '$.source', '') AS source, regression.audit_id, summary, item, measure,
    round(predecessor_value, 4) AS before, round(value, 4) AS value, round(delta, 4) AS delta,
    round(relative_change, 3) AS relative_change, worse_when, round(tolerance, 4) AS tolerance
FROM regression
LEFT JOIN audit USING (audit_id)
WHERE is_worse
ORDER BY audit.finished DESC NULLS LAST, regression.audit_id, predecessor_audit_id, summary, item, measure;
