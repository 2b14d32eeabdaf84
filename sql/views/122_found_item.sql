-- What needs a decision: verdicts not to serve, rules that tripped the newest gate of a policy, figures that got worse.
-- So does a watched checkpoint that cannot be read: audit_id is a key of it, against its name. And the newest answer to a question that is a problem: audit_id is the first answer with its verdict, against what it
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
        left(md5(concat_ws(chr(10), source, parameters_key, revision, status, CAST(last_done AS VARCHAR))), 16)
            AS audit_id,
        'watched' AS what,
        source AS against,
        '' AS policy,
        status AS item
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
