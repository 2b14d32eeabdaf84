-- What did each audit's last gate find, with failed rules first?
SELECT
    outcome.source,
    finding.audit_id,
    finding.policy,
    finding.rule,
    finding.summary,
    finding.item,
    finding.measure,
    finding.value,
    finding.lowest,
    finding.highest,
    finding.baseline_value,
    finding.change,
    finding.observed,
    finding.outcome,
    finding.trips,
    finding.reason,
    finding.precision
FROM gate_finding AS finding
JOIN gate_outcome AS outcome USING (audit_id)
ORDER BY outcome.evaluated DESC, finding.audit_id, finding.trips DESC, finding.rule, finding.item, finding.measure, finding.summary;
