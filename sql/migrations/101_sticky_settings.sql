-- What is asked of the search for sticky tokens moves to that measure's settings, where a new audit has it.
-- The view latest_result takes both for one question. What failed audits were asked is left as it was typed.
UPDATE audit
SET settings = json_merge_patch(
    settings,
    CASE
        WHEN json_exists(settings, '$.sticky') THEN json_object(
            'limit_tokens', NULL,
            'sticky', json_object('limit_tokens', settings -> '$.limit_tokens', 'exhaustive', false)
        )
        ELSE json_object('limit_tokens', NULL)
    END
)
WHERE status = 'published' AND json_exists(settings, '$.limit_tokens');
