-- Each published audit under each of its names: the history of a name is that of these rows.
CREATE OR REPLACE VIEW audit_named AS
SELECT
    question.audit_id,
    question.checkpoint_id,
    -- A hub id without its revision; a path may contain an @.
    CASE
        WHEN name.source IS NULL THEN question.source
        WHEN name.source LIKE '/%' THEN name.source
        ELSE regexp_replace(name.source, '@.*$', '')
    END AS source,
    question.question,
    coalesce(name.asked, question.finished) AS asked
FROM audit_question AS question
LEFT JOIN audit_name AS name USING (audit_id);
