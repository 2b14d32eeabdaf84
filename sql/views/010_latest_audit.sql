-- The newest published audit of each checkpoint.
CREATE OR REPLACE VIEW latest_audit AS
SELECT audit.*, coalesce(audit.settings ->> '$.source', checkpoint.source) AS source, checkpoint.revision, checkpoint.pooling, checkpoint.hidden_size
FROM audit
JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published'
QUALIFY row_number() OVER (PARTITION BY audit.checkpoint_id ORDER BY audit.finished DESC, audit.audit_id) = 1;
