-- Results of each audit's last gate, one row per rule and figure; earlier gates are in gate_result.
CREATE OR REPLACE VIEW gate_finding AS
SELECT gate_result.*
FROM gate_result
JOIN audit USING (audit_id)
WHERE audit.status = 'published'
-- All rows of a gate have the same timestamp; if two gates share one, the first policy counts.
QUALIFY rank() OVER (
    PARTITION BY gate_result.audit_id ORDER BY evaluated DESC, policy_hash, baseline_audit_id
) = 1;
