-- How many encodes did the search spend on how many tokens?
SELECT
    latest.source, latest.checkpoint_id, draws, count(*) AS tokens, count(shortlisted_by) AS candidates,
    sum(draws) AS encodes
FROM sticky_score
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
GROUP BY ALL
ORDER BY latest.source, latest.checkpoint_id, draws;
