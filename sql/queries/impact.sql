-- What do sticky tokens do to retrieval, clustering, classification and similarity, compared with ordinary tokens?
SELECT
    checkpoint.source, corpus, metric, arm, poisoned, tokens, round(score, 4) AS score, round(change, 4) AS change,
    round(change_low, 4) AS change_low, round(change_high, 4) AS change_high, round(beyond, 4) AS beyond,
    round(beyond_low, 4) AS beyond_low, round(beyond_high, 4) AS beyond_high, items, held, round(copies, 1) AS copies
FROM impact
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published'
-- The newest audit of each checkpoint with this measure, which is off by default.
QUALIFY dense_rank() OVER (PARTITION BY checkpoint_id, corpus ORDER BY audit.finished DESC, audit_id) = 1
ORDER BY checkpoint.source, corpus, metric, poisoned <> 'none', poisoned, arm <> 'ordinary', arm, audit_id;
