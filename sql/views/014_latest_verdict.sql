-- Whether each checkpoint may be served: the verdict of its newest audit that measured integrity and quality.
CREATE OR REPLACE VIEW latest_verdict AS
SELECT audit.checkpoint_id, checkpoint.source, verdict.*, audit.finished
FROM verdict
JOIN audit USING (audit_id)
LEFT JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published' AND verdict.kind <> 'not checked'
QUALIFY row_number() OVER (
    PARTITION BY audit.checkpoint_id ORDER BY audit.finished DESC, audit.audit_id
) = 1;
