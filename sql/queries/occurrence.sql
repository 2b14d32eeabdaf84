-- Which severe tokens occur in real texts, how often, and how far do cosines move when they are removed?
SELECT
    checkpoint.source, occurrence.corpus, occurrence.token_id, token, severity, round(loss, 3) AS loss, occurrences,
    occurrence.texts, round(per_million, 2) AS per_million, round(less_frequent, 3) AS less_frequent,
    occurrence.removal_texts, round(occurrence.shift, 4) AS shift, round(occurrence.moved, 4) AS moved,
    round(occurrence.ordinary_moved, 4) AS ordinary_moved, round(occurrence.excess, 4) AS excess,
    round(occurrence.excess_low, 4) AS excess_low, round(occurrence.excess_high, 4) AS excess_high
FROM occurrence
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
JOIN token ON token.checkpoint_id = audit.checkpoint_id AND token.token_id = occurrence.token_id
WHERE audit.status = 'published'
-- The newest audit of each checkpoint with this measure, which is off by default.
QUALIFY rank() OVER (PARTITION BY audit.checkpoint_id, occurrence.corpus ORDER BY audit.finished DESC, audit.audit_id) = 1
ORDER BY checkpoint.source, occurrence.corpus, occurrences DESC, occurrence.token_id, audit.audit_id;
