-- Which pairs of texts differ most in what mean pooling throws away?
SELECT
    source, corpus, round(socm, 4) AS socm, round(d_mu, 4) AS d_mu, round(d_sigma, 4) AS d_sigma,
    a.text AS first_text, b.text AS second_text
FROM (
    SELECT socm_pair.*, socm_text.corpus_id, latest_audit.source
    FROM socm_pair
    JOIN latest_audit USING (audit_id)
    JOIN socm_text ON socm_text.audit_id = socm_pair.audit_id AND socm_text.corpus = socm_pair.corpus
        AND socm_text.position = socm_pair.first
    ORDER BY socm DESC, source, corpus, first, second
    LIMIT 20
) AS worst
JOIN text AS a ON a.corpus_id = worst.corpus_id AND a.position = worst.first
JOIN text AS b ON b.corpus_id = worst.corpus_id AND b.position = worst.second
ORDER BY worst.socm DESC, source, corpus, first, second;
