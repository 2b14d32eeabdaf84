-- Do short or long irrelevant documents outrank relevant ones?
SELECT
    latest.source, r.corpus, r.condition, r.relevant, r.pairs, r.documents, r.boundary, r.read,
    round(r.by_short, 4) AS by_short, round(r.by_long, 4) AS by_long, round(r.difference, 4) AS difference,
    round(r.low, 4) AS low, round(r.high, 4) AS high
FROM length_ranking AS r
JOIN (FROM latest_result WHERE measure = 'length') AS latest USING (audit_id)
ORDER BY latest.source, r.corpus, r.condition, r.relevant, r.audit_id;
