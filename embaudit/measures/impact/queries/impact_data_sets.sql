-- Where scored pairs are of several data sets: the score of each, clean and with tokens in the texts?
SELECT
    checkpoint.source, corpus, data_set, metric, arm, poisoned, round(score, 4) AS score, round(change, 4) AS change,
    round(change_low, 4) AS change_low, round(change_high, 4) AS change_high, round(beyond, 4) AS beyond,
    round(beyond_low, 4) AS beyond_low, round(beyond_high, 4) AS beyond_high, items
FROM impact_data_set
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published'
-- The newest audit of each checkpoint with this measure, which is off by default.
QUALIFY dense_rank() OVER (PARTITION BY checkpoint_id, corpus ORDER BY audit.finished DESC, audit_id) = 1
ORDER BY checkpoint.source, corpus, data_set, metric, poisoned <> 'none', poisoned, arm <> 'ordinary', arm, audit_id;
