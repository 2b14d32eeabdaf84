-- Which expectations failed, in which audits, when, and on which rows?
SELECT
    coalesce(audit.settings ->> '$.source', '') AS source, audit.finished, result.table_name, result.shard,
    result.expectation, result.column_name, result.severity, result.raised_exception, result.observed,
    result.unexpected_count, result.examples, result.audit_id
FROM expectation_result AS result
LEFT JOIN audit USING (audit_id)
WHERE NOT result.success
ORDER BY
    audit.finished DESC NULLS LAST, result.audit_id, result.severity, result.table_name, result.shard,
    result.expectation, result.column_name, result.kwargs;
