-- How many encodes did the search spend on how many tokens?
SELECT
    latest_audit.source, latest_audit.checkpoint_id, draws, count(*) AS tokens, count(shortlisted_by) AS candidates,
    sum(draws) AS encodes
FROM sticky_score
JOIN latest_audit USING (audit_id)
GROUP BY ALL
ORDER BY latest_audit.source, latest_audit.checkpoint_id, draws;
