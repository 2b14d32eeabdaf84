-- Which pairs of texts differ most in what mean pooling throws away?
WITH worst_of_all AS (
    SELECT socm_pair.*, socm_text.corpus_id, latest_audit.source
    FROM socm_pair
    JOIN latest_audit USING (audit_id)
    JOIN socm_text ON socm_text.audit_id = socm_pair.audit_id AND socm_text.corpus = socm_pair.corpus
        AND socm_text.position = socm_pair.first
    ORDER BY socm DESC, source, corpus, first, second, audit_id
    LIMIT 20
),
worst_listed AS (
    SELECT listed.*, socm_summary.corpus_id, latest_audit.source
    FROM socm_listed_pair AS listed
    JOIN latest_audit USING (audit_id)
    JOIN socm_summary USING (audit_id, corpus)
    ORDER BY socm DESC, source, corpus, position, audit_id
    LIMIT 20
),
with_texts AS (
    SELECT source, corpus, audit_id, socm, d_mu, d_sigma, worst.first, worst.second, a.text AS first_text, b.text AS second_text
    FROM worst_of_all AS worst
    JOIN text AS a ON a.corpus_id = worst.corpus_id AND a.position = worst.first
    JOIN text AS b ON b.corpus_id = worst.corpus_id AND b.position = worst.second
    UNION ALL
    SELECT source, corpus, audit_id, socm, d_mu, d_sigma, worst.first, worst.second, pair.first, pair.second
    FROM worst_listed AS worst
    JOIN text_pair AS pair USING (corpus_id, position)
)
SELECT
    source, corpus, round(socm, 4) AS socm, round(d_mu, 4) AS d_mu, round(d_sigma, 4) AS d_sigma, first_text, second_text
FROM with_texts
ORDER BY with_texts.socm DESC, source, corpus, first, second, audit_id, first_text, second_text
LIMIT 20;
