-- For each published audit, the newest earlier one with the same source and question on another checkpoint.
CREATE OR REPLACE VIEW audit_predecessor AS
SELECT own.audit_id, earlier.audit_id AS predecessor_audit_id
FROM audit_question AS own
JOIN audit_question AS earlier
    ON earlier.source = own.source AND earlier.question = own.question
    AND earlier.checkpoint_id <> own.checkpoint_id
    AND (earlier.finished < own.finished OR (earlier.finished = own.finished AND earlier.audit_id < own.audit_id))
QUALIFY row_number() OVER (PARTITION BY own.audit_id ORDER BY earlier.finished DESC, earlier.audit_id DESC) = 1;
