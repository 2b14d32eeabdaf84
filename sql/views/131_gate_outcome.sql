-- Whether each audit passed its last gate, and how many findings tripped it.
CREATE OR REPLACE VIEW gate_outcome AS
SELECT
    finding.audit_id,
    coalesce(min(audit.settings ->> '$.source'), min(checkpoint.source)) AS source,
    min(finding.policy) AS policy,
    min(finding.policy_hash) AS policy_hash,
    nullif(min(finding.baseline_audit_id), '') AS baseline_audit_id,
    CASE WHEN bool_or(finding.trips) THEN 'tripped' ELSE 'passed' END AS outcome,
    count(*) AS findings,
    count(*) FILTER (finding.trips) AS tripped,
    count(*) FILTER (finding.outcome = 'missing' AND NOT finding.trips) AS warned,
    list(DISTINCT finding.rule ORDER BY finding.rule) FILTER (finding.trips) AS tripped_rules,
    max(finding.evaluated) AS evaluated
FROM gate_finding AS finding
JOIN audit USING (audit_id)
LEFT JOIN checkpoint USING (checkpoint_id)
GROUP BY finding.audit_id;
