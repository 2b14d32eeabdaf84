-- Whether each audit passed its last gate, with how many findings tripped it.
CREATE OR REPLACE VIEW gate_outcome AS
SELECT
    finding.audit_id,
    coalesce(any_value(audit.settings ->> '$.source'), any_value(checkpoint.source)) AS source,
    any_value(finding.policy) AS policy,
    any_value(finding.policy_hash) AS policy_hash,
    nullif(any_value(finding.baseline_audit_id), '') AS baseline_audit_id,
    CASE WHEN bool_or(finding.trips) THEN 'tripped' ELSE 'passed' END AS outcome,
    count(*) AS findings,
    count(*) FILTER (finding.trips) AS tripped,
    count(*) FILTER (finding.outcome = 'missing' AND NOT finding.trips) AS warned,
    list_sort(list(DISTINCT finding.rule) FILTER (finding.trips)) AS tripped_rules,
    any_value(finding.evaluated) AS evaluated
FROM gate_finding AS finding
JOIN audit USING (audit_id)
LEFT JOIN checkpoint USING (checkpoint_id)
GROUP BY finding.audit_id;
