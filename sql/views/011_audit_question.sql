-- The source and question of each published audit: audits with the same question differ only in their checkpoint.
CREATE OR REPLACE VIEW audit_question AS
SELECT
    audit.audit_id,
    audit.checkpoint_id,
    audit.finished,
    -- A hub id without its revision; a path may contain an @.
    CASE WHEN named.source LIKE '/%' THEN named.source ELSE regexp_replace(named.source, '@.*$', '') END AS source,
    md5(concat_ws(
        chr(10),
        -- A setting that is null is one that an older audit does not have.
        json_merge_patch(
            '{}', json_merge_patch(audit.settings, '{"source": null, "description": null, "measures": null}')
        ),
        list_sort(CAST(audit.settings -> '$.measures' AS VARCHAR[])),
        audit.seed,
        audit.dtype,
        coalesce(corpora.contents, ''),
        -- Figures of different code versions are not comparable.
        coalesce(measured.versions, '')
    )) AS question
FROM audit
LEFT JOIN checkpoint USING (checkpoint_id)
-- The checkpoint's row has the last name under which this content was audited.
CROSS JOIN LATERAL (SELECT coalesce(audit.settings ->> '$.source', checkpoint.source, '') AS source) AS named
LEFT JOIN (
    SELECT audit_id, string_agg(name || '=' || corpus_id, ' ' ORDER BY name) AS contents FROM audit_corpus GROUP BY audit_id
) AS corpora USING (audit_id)
LEFT JOIN (
    SELECT audit_id, string_agg(measure || '=' || version, ' ' ORDER BY measure) AS versions FROM measure_run GROUP BY audit_id
) AS measured USING (audit_id)
WHERE audit.status = 'published';
