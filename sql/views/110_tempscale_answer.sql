-- Does a lower attention temperature help? One row per task and bin, from each checkpoint's newest audit that asked.
CREATE OR REPLACE VIEW tempscale_answer AS
WITH newest AS (
    SELECT audit.audit_id, audit.checkpoint_id
    FROM audit
    WHERE audit.status = 'published' AND EXISTS (SELECT 1 FROM tempscale_choice AS c WHERE c.audit_id = audit.audit_id)
    QUALIFY row_number() OVER (PARTITION BY checkpoint_id ORDER BY finished DESC, audit_id) = 1
)
SELECT checkpoint.source, newest.checkpoint_id, choice.*
FROM tempscale_choice AS choice
JOIN newest USING (audit_id)
JOIN checkpoint USING (checkpoint_id);
