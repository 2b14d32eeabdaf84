-- Which tokens cost most, and in which task?
SELECT
    checkpoint.source, corpus, metric, poisoned, arm, token_id, token, round(score, 4) AS score,
    round(change, 4) AS change, round(beyond, 4) AS beyond, round(beyond_low, 4) AS beyond_low,
    round(beyond_high, 4) AS beyond_high
FROM impact_token
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published'
QUALIFY dense_rank() OVER (PARTITION BY checkpoint_id, corpus ORDER BY audit.finished DESC, audit_id) = 1
ORDER BY checkpoint.source, corpus, metric, change, token_id, poisoned, arm, audit_id;
