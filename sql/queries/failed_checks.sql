-- Which expectations failed, in which audits and on which rows?
SELECT audit_id, table_name, shard, expectation, column_name, severity, raised_exception, observed, unexpected_count, examples
FROM expectation_result
WHERE NOT success
ORDER BY audit_id, severity, table_name, shard, expectation, column_name, kwargs;
