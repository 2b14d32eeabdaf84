-- What needs a decision: verdicts not to serve, rules that tripped the newest gate of a policy, figures that got worse.
-- So does what the last look at each watched index found: audit_id is the check that found it first, against the index.
-- accepted is null where nobody has accepted it.
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
SELECT in_index.*, acceptance.accepted_by, acceptance.reason, acceptance.accepted
FROM (
    SELECT
        problem ->> '$.key' AS audit_id, 'index' AS what, store AS against, '' AS policy, problem ->> '$.name' AS item
    FROM (
        SELECT store, unnest(json_extract(problems, '$[*]')) AS problem
        FROM index_check
        QUALIFY row_number() OVER (PARTITION BY store ORDER BY asked DESC, check_key) = 1
    )
) AS in_index
LEFT JOIN acceptance USING (audit_id, what, against, item);
