-- How does each checkpoint do in what users complain about (first figures, from 0 to 1, where 1 is best)?
WITH share (probe, summary, measure) AS (
    VALUES ('surface', 'surface', 'overlap'), ('meaning', 'meaning', 'nearer'), ('position', 'position', 'won'),
        ('attractors', 'attractor_summary', 'clean'), ('compression', 'compression', 'recall'),
        ('chunks', 'chunk', 'score'), ('languages', 'language', 'found')
)
SELECT
    latest.source, probe, item, measure AS figure, round(value, 3) AS value, round(low, 3) AS low,
    round(high, 3) AS high, audit_id
FROM share
JOIN summary_figure USING (summary, measure)
LEFT JOIN summary_interval USING (audit_id, summary, item, measure)
JOIN (SELECT audit_id, source, measure AS probe FROM latest_result) AS latest USING (audit_id, probe)
ORDER BY latest.source, probe, value, item, audit_id;
