-- The checkpoint that each name stands for: its newest content, without overrides if it was audited so.
CREATE OR REPLACE VIEW named_checkpoint AS
WITH asked AS (
    SELECT
        audit.audit_id,
        coalesce(audit_name.source, audit.settings ->> '$.source', checkpoint.source) AS source,
        coalesce(audit_name.asked, audit.finished) AS asked
    FROM audit
    LEFT JOIN audit_name USING (audit_id)
    LEFT JOIN checkpoint USING (checkpoint_id)
    WHERE audit.status = 'published'
),
named AS (
    -- With its revision, if one was given, and without.
    SELECT source AS name, audit_id, asked FROM asked
    UNION
    SELECT regexp_replace(source, '@.*$', ''), audit_id, asked FROM asked WHERE source NOT LIKE '/%'
),
audited AS (
    SELECT
        named.name, audit.audit_id, audit.checkpoint_id, named.asked,
        concat_ws(' ', checkpoint.weights_sha256, checkpoint.tokenizer_sha256, checkpoint.config_sha256) AS content,
        -- Another pooling, length or prompt makes another checkpoint, but is not what the name is served as.
        coalesce(
            audit.settings ->> '$.pooling', audit.settings ->> '$.max_length', audit.settings ->> '$.prompt',
            audit.settings ->> '$.query_prompt', audit.settings ->> '$.document_prompt'
        ) IS NOT NULL AS is_overridden
    FROM named
    JOIN audit USING (audit_id)
    LEFT JOIN checkpoint USING (checkpoint_id)
    WHERE named.name <> ''
),
newest AS (
    SELECT *, first_value(content) OVER (PARTITION BY name ORDER BY asked DESC, audit_id) AS newest_content
    FROM audited
)
SELECT name, checkpoint_id
FROM newest
WHERE content = newest_content
QUALIFY row_number() OVER (PARTITION BY name ORDER BY is_overridden, asked DESC, audit_id) = 1;
