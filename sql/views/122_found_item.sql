-- What needs a decision: verdicts not to serve, rules that tripped the newest gate of a policy, figures that got worse.
-- So does what the last look at each watched index or endpoint found: audit_id is the look that found it first, against
-- the index or the address; and a watched checkpoint that cannot be read: audit_id is a key of it, against its name.
-- And the newest answer to a question that is a problem: audit_id is the first answer with its verdict, against what it
-- was asked of. accepted is null where nobody has accepted it.
CREATE OR REPLACE VIEW found_item AS
WITH found AS (
    SELECT audit_id, 'gate' AS what, policy_hash AS against, policy, rule AS item, bool_or(trips) AS is_bad
    FROM (
        SELECT *
        FROM gate_result
        QUALIFY rank() OVER (
            PARTITION BY audit_id, policy ORDER BY evaluated DESC, policy_hash, baseline_audit_id
        ) = 1
    )
    GROUP BY ALL
    UNION ALL
    SELECT
        audit_id, 'worse', predecessor_audit_id, '', concat(summary, '.', measure, ', ', item), is_worse
    FROM regression
    UNION ALL
    SELECT audit_id, 'verdict', '', '', cause, kind = 'do not serve'
    FROM verdict
)
SELECT found.* EXCLUDE (is_bad), acceptance.accepted_by, acceptance.reason, acceptance.accepted
FROM found
JOIN audit USING (audit_id)
LEFT JOIN acceptance USING (audit_id, what, against, item)
WHERE found.is_bad AND audit.status = 'published'
UNION ALL
SELECT looked_at.*, acceptance.accepted_by, acceptance.reason, acceptance.accepted
FROM (
    SELECT
        problem ->> '$.key' AS audit_id, 'index' AS what, store AS against, '' AS policy, problem ->> '$.name' AS item
    FROM (
        SELECT store, unnest(json_extract(problems, '$[*]')) AS problem
        FROM index_check
        QUALIFY row_number() OVER (PARTITION BY store ORDER BY asked DESC, check_key) = 1
    )
    UNION ALL
    -- The same difference, night after night, is one item: of the first of the looks since it was last right.
    SELECT look_key, 'endpoint', endpoint, '', item
    FROM (
        SELECT
            *,
            coalesce(nullif(array_to_string(CAST(differs AS VARCHAR[]), '; '), ''), verdict) AS item,
            max(asked) OVER of_endpoint AS last_asked,
            max(asked) FILTER (verdict IN ('the same function', 'first seen')) OVER of_endpoint AS last_right
        FROM served
        WHERE verdict <> 'could not be compared'
        WINDOW of_endpoint AS (PARTITION BY endpoint)
    )
    WHERE last_right IS NULL OR asked > last_right
    QUALIFY
        max(asked) OVER (PARTITION BY endpoint, item) = last_asked
        AND row_number() OVER (PARTITION BY endpoint, item ORDER BY asked, look_key) = 1
    UNION ALL
    SELECT
        left(md5(concat_ws(chr(10), source, parameters_key, revision, status, CAST(last_done AS VARCHAR))), 16),
        'watched', source, '', status
    FROM (
        SELECT
            *,
            max(last_seen) FILTER (status IN ('audited', 'unchanged', 'known')) OVER (PARTITION BY source) AS last_done
        FROM watched_revision
        QUALIFY row_number() OVER (
            PARTITION BY source ORDER BY last_seen DESC, first_seen DESC, revision, parameters_key
        ) = 1
    )
    WHERE status IN ('failed', 'gone')
    UNION ALL
    -- The same, night after night, is one item: of the first answer since another verdict, or something else was wrong.
    SELECT first_answer_id, 'answer', subject, '', concat(asks, ': ', verdict)
    FROM (
        SELECT *
        FROM answer_history
        QUALIFY row_number() OVER (PARTITION BY question_key ORDER BY asked DESC, answer_id) = 1
    )
    WHERE level = 'problem'
) AS looked_at
LEFT JOIN acceptance USING (audit_id, what, against, item);
