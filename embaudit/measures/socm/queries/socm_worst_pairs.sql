-- Which pairs of texts differ most in what mean pooling discards?
WITH pair AS (
    SELECT audit_id, corpus, first, second, d_mu, d_sigma, socm, NULL AS position FROM socm_pair
    UNION ALL
    SELECT audit_id, corpus, first, second, d_mu, d_sigma, socm, position FROM socm_listed_pair
),
-- Select the worst of millions before any join, and name the newest results only once: otherwise DuckDB also reads the pairs
-- of older audits.
worst AS (
    SELECT * FROM pair
    WHERE audit_id IN (SELECT audit_id FROM latest_result WHERE measure = 'socm' AND is_lead)
    ORDER BY socm DESC, corpus, first, second, position, audit_id
    LIMIT 20
)
SELECT
    source, corpus, round(socm, 4) AS socm, round(d_mu, 4) AS d_mu, round(d_sigma, 4) AS d_sigma,
    coalesce(listed.first, one.text) AS first_text, coalesce(listed.second, other.text) AS second_text
FROM worst
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
JOIN socm_summary USING (audit_id, corpus)
LEFT JOIN text_pair AS listed USING (corpus_id, position)
LEFT JOIN text AS one
    ON worst.position IS NULL AND one.corpus_id = socm_summary.corpus_id AND one.position = worst.first
LEFT JOIN text AS other
    ON worst.position IS NULL AND other.corpus_id = socm_summary.corpus_id AND other.position = worst.second
WHERE first_text IS NOT NULL AND second_text IS NOT NULL
ORDER BY worst.socm DESC, source, corpus, worst.first, worst.second, worst.position, audit_id;
