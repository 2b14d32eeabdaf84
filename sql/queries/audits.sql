-- Which audits are there, and how did they end?
SELECT
    audit_id, coalesce(audit.settings ->> '$.source', source) AS source, profile, status, round(seconds, 1) AS seconds, finished, reason
FROM audit LEFT JOIN checkpoint USING (checkpoint_id)
ORDER BY finished DESC NULLS LAST, audit_id;
