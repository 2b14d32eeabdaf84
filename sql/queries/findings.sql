-- What did each checkpoint's newest audit find, in words, worst first?
SELECT
    latest_audit.source,
    finding.level,
    finding.measure,
    finding.sentence,
    finding.advice,
    finding.audit_id
FROM finding
JOIN latest_audit USING (audit_id)
ORDER BY
    latest_audit.source,
    finding.audit_id,
    list_position(['problem', 'look', 'not measured', 'ok'], finding.level),
    finding.place;
