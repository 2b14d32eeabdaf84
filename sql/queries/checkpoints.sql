-- Which checkpoints were audited?
SELECT
    checkpoint_id, source, left(revision, 12) AS revision, architecture, hidden_size, layers, vocabulary_size, pooling, max_length, prompt,
    count(audit_id) FILTER (status = 'published') AS audits, max(finished) FILTER (status = 'published') AS last_audit
FROM checkpoint LEFT JOIN audit USING (checkpoint_id)
GROUP BY ALL
ORDER BY last_audit DESC NULLS LAST, source, checkpoint_id;
