-- Which tokens cost most, and in which task?
SELECT
    latest.source, corpus, metric, poisoned, arm, token_id, token, round(score, 4) AS score,
    round(change, 4) AS change, round(beyond, 4) AS beyond, round(beyond_low, 4) AS beyond_low,
    round(beyond_high, 4) AS beyond_high
FROM impact_token
JOIN (FROM latest_result WHERE measure = 'impact') AS latest USING (audit_id)
ORDER BY latest.source, corpus, metric, change, token_id, poisoned, arm, audit_id;
