-- Figures of published audits for which a paper published a value: own value, published value, and their difference.
CREATE OR REPLACE VIEW published_beside_audit AS
WITH own_figure AS (
    SELECT
        socm.audit_id, 'socm_mean' AS measure, socm.corpus, socm.socm_mean AS value, socm.socm_low AS low,
        socm.socm_high AS high, socm.texts, socm.pairs, corpus.source AS texts_from
    FROM socm_summary AS socm
    LEFT JOIN corpus USING (corpus_id)
    UNION ALL BY NAME
    SELECT audit_id, 'u' AS measure, '' AS corpus, max(u) AS value FROM sticky_summary GROUP BY audit_id
    UNION ALL BY NAME
    FROM (
        UNPIVOT (
            SELECT
                audit_id, '' AS corpus, scanned::DOUBLE AS reference_scanned,
                candidates::DOUBLE AS reference_candidates, sticky::DOUBLE AS reference_sticky,
                cutoff AS reference_cutoff
            FROM sticky_reference_summary
            WHERE protocol = 'reference'
        ) ON COLUMNS(* EXCLUDE (audit_id, corpus)) INTO NAME measure VALUE value
    )
)
SELECT
    audit.audit_id,
    audit.checkpoint_id,
    checkpoint.source,
    checkpoint.pooling,
    audit.finished,
    own.measure,
    own.corpus,
    own.value AS own,
    own.low AS own_low,
    own.high AS own_high,
    own.texts AS own_texts,
    own.pairs AS own_pairs,
    own.texts_from AS own_texts_from,
    published.value AS published,
    own.value - published.value AS difference,
    published.checkpoint AS published_checkpoint,
    published.source AS published_in,
    match.matched_by
FROM own_figure AS own
JOIN audit USING (audit_id)
JOIN checkpoint ON checkpoint.checkpoint_id = audit.checkpoint_id
JOIN checkpoint_match AS match ON match.checkpoint_id = audit.checkpoint_id AND match.kind = 'published'
JOIN published_figure AS published
    ON published.checkpoint = match.name AND published.measure = own.measure AND published.corpus = own.corpus
WHERE audit.status = 'published';
