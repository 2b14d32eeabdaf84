-- What each audit's last gate found, one row a rule and figure; earlier gates stay in gate_result.
CREATE OR REPLACE VIEW gate_finding AS
SELECT gate_result.*
FROM gate_result
JOIN audit USING (audit_id)
WHERE audit.status = 'published'
-- All rows of one gate have its instant; of two gates of one instant the first policy counts.
QUALIFY rank() OVER (
    PARTITION BY gate_result.audit_id ORDER BY evaluated DESC, policy_hash, baseline_audit_id
) = 1;
