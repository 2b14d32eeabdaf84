-- Which severe tokens occur in real texts, how often, and how far do cosines move when they are removed?
SELECT
    latest.source, occurrence.corpus, occurrence.token_id, token, severity, round(loss, 3) AS loss, occurrences,
    occurrence.texts, round(per_million, 2) AS per_million, round(less_frequent, 3) AS less_frequent,
    occurrence.removal_texts, round(occurrence.shift, 4) AS shift, round(occurrence.moved, 4) AS moved,
    round(occurrence.ordinary_moved, 4) AS ordinary_moved, round(occurrence.excess, 4) AS excess,
    round(occurrence.excess_low, 4) AS excess_low, round(occurrence.excess_high, 4) AS excess_high
FROM occurrence
JOIN (FROM latest_result WHERE measure = 'occurrence') AS latest USING (audit_id)
JOIN token ON token.checkpoint_id = latest.checkpoint_id AND token.token_id = occurrence.token_id
ORDER BY latest.source, occurrence.corpus, occurrences DESC, occurrence.token_id, latest.audit_id;
