-- Which audits passed their gate, and which rules did the others trip?
SELECT source, audit_id, policy, outcome, findings, tripped, warned, tripped_rules, baseline_audit_id, evaluated
FROM gate_outcome
ORDER BY evaluated DESC, source, audit_id;
