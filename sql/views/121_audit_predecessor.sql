-- For each published audit, the newest earlier one of a name with the same question on another checkpoint.
CREATE OR REPLACE VIEW audit_predecessor AS
SELECT own.audit_id, earlier.audit_id AS predecessor_audit_id
FROM audit_named AS own
JOIN audit_named AS earlier
    ON earlier.source = own.source AND earlier.question = own.question
    AND earlier.checkpoint_id <> own.checkpoint_id
    AND (earlier.asked < own.asked OR (earlier.asked = own.asked AND earlier.audit_id < own.audit_id))
QUALIFY row_number() OVER (
    PARTITION BY own.audit_id ORDER BY earlier.asked DESC, earlier.audit_id DESC, own.source
) = 1;
