-- How sticky each audited model's vocabulary is, with the model's size.
CREATE OR REPLACE VIEW sticky_size AS
SELECT
    audit.audit_id,
    checkpoint.checkpoint_id,
    checkpoint.source,
    checkpoint.parameters,
    checkpoint.layers,
    checkpoint.hidden_size,
    checkpoint.vocabulary_size,
    summary.u,
    summary.searched,
    severity.estimated AS moderate,
    severity.estimated_low AS moderate_low,
    severity.estimated_high AS moderate_high,
    severity.estimated / summary.searched AS moderate_share,
    (SELECT max(loss) FROM sticky_token WHERE sticky_token.audit_id = audit.audit_id) AS worst_loss
FROM latest_result AS audit
JOIN checkpoint ON checkpoint.checkpoint_id = audit.checkpoint_id
JOIN sticky_summary AS summary ON summary.audit_id = audit.audit_id AND summary.protocol = 'retention'
LEFT JOIN sticky_severity AS severity ON severity.audit_id = audit.audit_id AND severity.severity = 'moderate'
WHERE audit.measure = 'sticky' AND audit.is_lead
-- A model with two poolings or length limits counts once.
QUALIFY row_number() OVER (PARTITION BY checkpoint.weights_sha256 ORDER BY audit.finished DESC, audit.audit_id) = 1;
