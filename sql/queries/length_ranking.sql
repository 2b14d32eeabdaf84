-- Do short or long irrelevant documents outrank relevant ones?
SELECT
    latest_audit.source, r.corpus, r.condition, r.relevant, r.pairs, r.documents, r.boundary, r.read,
    round(r.by_short, 4) AS by_short, round(r.by_long, 4) AS by_long, round(r.difference, 4) AS difference,
    round(r.low, 4) AS low, round(r.high, 4) AS high
FROM length_ranking AS r
JOIN latest_audit USING (audit_id)
ORDER BY latest_audit.source, r.corpus, r.condition, r.relevant, r.audit_id;
