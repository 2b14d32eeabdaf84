-- Which scripts and origins have the lowest retention among the scanned tokens?
SELECT
    latest.source, checkpoint_id, script, origin, count(*) AS tokens, round(median(slope), 3) AS median_slope,
    count(*) FILTER (slope_rank <= 100) AS among_100_lowest
FROM sticky_score
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
JOIN token USING (checkpoint_id, token_id)
GROUP BY ALL
HAVING count(*) >= 20 OR among_100_lowest > 0
ORDER BY among_100_lowest DESC, tokens DESC, script, origin, checkpoint_id;
