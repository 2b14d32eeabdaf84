-- What does each checkpoint take for the same sentence?
SELECT
    latest.source, contrast, rewording, triples, round(nearer, 3) AS nearer, round(nearer_low, 3) AS low,
    round(nearer_high, 3) AS high, words_nearer, round(margin, 3) AS margin,
    round(rewording_similarity, 3) AS rewording_similarity, round(contrast_similarity, 3) AS contrast_similarity
FROM meaning
JOIN (FROM latest_result WHERE measure = 'meaning') AS latest USING (audit_id)
ORDER BY latest.source, rewording, nearer, contrast, audit_id;
