-- The state of each checkpoint: its newest published result of each measure and question.
-- A newer audit that measured something else replaces nothing. is_lead: of several questions, the one that most
-- checkpoints were asked, and of these the newest.
CREATE OR REPLACE VIEW latest_result AS
WITH ran AS (
    SELECT audit_id, measure, version FROM measure_run
    UNION ALL
    -- Findings about an audit as a whole, and of audits without a log of their measures.
    SELECT DISTINCT audit_id, measure, NULL
    FROM finding
    WHERE measure = 'audit' OR audit_id NOT IN (SELECT audit_id FROM measure_run)
),
asked AS (
    SELECT ran.*, json_extract(audit.settings, '$.' || ran.measure) AS settings
    FROM ran
    JOIN audit USING (audit_id)
),
-- Only the texts that the measure reads are part of its question.
texts AS (
    SELECT asked.audit_id, asked.measure, string_agg(name || '=' || corpus_id, ' ' ORDER BY name) AS contents
    FROM asked
    JOIN audit_corpus USING (audit_id)
    WHERE coalesce(list_contains(CAST(asked.settings -> '$.corpora' AS VARCHAR[]), name), true)
    GROUP BY ALL
),
result AS (
    SELECT
        audit.audit_id,
        audit.checkpoint_id,
        checkpoint.source,
        asked.measure,
        md5(concat_ws(
            chr(10),
            -- A setting that is null is one that an older audit does not have.
            coalesce(json_merge_patch('{}', json_merge_patch(asked.settings, '{"corpora": null}')), ''),
            coalesce(texts.contents, ''),
            coalesce(audit.settings ->> '$.pairs', ''),
            audit.seed,
            audit.dtype
        )) AS question,
        asked.version,
        audit.profile,
        audit.finished
    FROM asked
    JOIN audit USING (audit_id)
    LEFT JOIN checkpoint USING (checkpoint_id)
    LEFT JOIN texts ON texts.audit_id = asked.audit_id AND texts.measure = asked.measure
    WHERE audit.status = 'published'
    QUALIFY row_number() OVER (
        PARTITION BY audit.checkpoint_id, asked.measure, question ORDER BY audit.finished DESC, audit.audit_id
    ) = 1
),
-- What earlier revisions were asked does not count.
spread AS (
    SELECT measure, question, count(*) AS checkpoints, max(finished) AS last
    FROM result
    WHERE checkpoint_id IN (SELECT checkpoint_id FROM named_checkpoint)
    GROUP BY ALL
)
SELECT
    result.*,
    row_number() OVER (
        PARTITION BY result.checkpoint_id, result.measure
        ORDER BY spread.checkpoints DESC NULLS LAST, spread.last DESC, result.question
    ) = 1 AS is_lead
FROM result
LEFT JOIN spread ON spread.measure = result.measure AND spread.question = result.question;
