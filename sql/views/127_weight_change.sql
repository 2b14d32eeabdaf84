-- How many tensors changed from an audit's predecessor to it, by layer, for stored comparisons; no rows without hashes.
-- is_read: whether a vector depends on them. Tensors of one audit only are changed, too.
CREATE OR REPLACE VIEW weight_change AS
WITH pair AS (
    SELECT DISTINCT audit_id, predecessor_audit_id FROM regression
),
-- Only audits that both looked at the weights.
looked AS (
    SELECT pair.*
    FROM pair
    WHERE EXISTS (SELECT 1 FROM weight AS w WHERE w.audit_id = pair.audit_id)
        AND EXISTS (SELECT 1 FROM weight AS w WHERE w.audit_id = pair.predecessor_audit_id)
),
own AS (
    SELECT looked.*, weight.* EXCLUDE (audit_id) FROM looked JOIN weight USING (audit_id)
),
before AS (
    SELECT looked.*, weight.* EXCLUDE (audit_id)
    FROM looked JOIN weight ON weight.audit_id = looked.predecessor_audit_id
)
SELECT
    audit_id,
    predecessor_audit_id,
    coalesce(own.layer, before.layer) AS layer,
    coalesce(own.status, before.status) NOT IN ('unused', 'unread') AS is_read,
    count(*) AS tensors,
    count(*) FILTER (own.content IS DISTINCT FROM before.content) AS changed
FROM own
FULL JOIN before USING (audit_id, predecessor_audit_id, tensor)
GROUP BY ALL;
