-- What got worse from one revision to the next, and when?
SELECT
    coalesce(audit.settings ->> '$.source', '') AS source, audit.finished, summary, item, measure,
    round(predecessor_value, 4) AS before, round(value, 4) AS value, round(delta, 4) AS delta,
    round(relative_change, 3) AS relative_change, worse_when, round(tolerance, 4) AS tolerance, regression.audit_id
FROM regression
LEFT JOIN audit USING (audit_id)
WHERE is_worse
ORDER BY audit.finished DESC NULLS LAST, regression.audit_id, predecessor_audit_id, summary, item, measure;
