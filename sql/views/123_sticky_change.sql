-- Tokens of moderate or strong severity in an audit but not in its predecessor, or vice versa, for stored comparisons.
-- Tokens are matched by their strings, since vocabularies may number them differently.
CREATE OR REPLACE VIEW sticky_change AS
WITH pair AS (
    SELECT DISTINCT audit_id, predecessor_audit_id FROM regression
),
-- Only audits that both measured sticky tokens.
looked AS (
    SELECT pair.*
    FROM pair
    WHERE EXISTS (SELECT 1 FROM sticky_summary AS s WHERE s.audit_id = pair.audit_id)
        AND EXISTS (SELECT 1 FROM sticky_summary AS s WHERE s.audit_id = pair.predecessor_audit_id)
),
found AS (
    SELECT
        audit_id, token, bool_or(severity IN ('strong', 'moderate')) AS is_severe,
        max(loss) AS loss, first(severity ORDER BY loss DESC, token_id) AS severity,
        first(script ORDER BY loss DESC, token_id) AS script
    FROM sticky_token
    GROUP BY audit_id, token
),
own AS (
    SELECT looked.*, found.* EXCLUDE (audit_id) FROM looked JOIN found USING (audit_id)
),
before AS (
    SELECT looked.*, found.* EXCLUDE (audit_id)
    FROM looked JOIN found ON found.audit_id = looked.predecessor_audit_id
)
SELECT
    audit_id,
    predecessor_audit_id,
    token,
    CASE WHEN coalesce(own.is_severe, false) THEN 'newly sticky' ELSE 'no longer sticky' END AS change,
    own.loss,
    before.loss AS predecessor_loss,
    own.severity,
    before.severity AS predecessor_severity,
    coalesce(own.script, before.script) AS script
FROM own
FULL JOIN before USING (audit_id, predecessor_audit_id, token)
WHERE coalesce(own.is_severe, false) <> coalesce(before.is_severe, false);
