-- What was found in each checkpoint, in words, worst first, by its newest results?
SELECT
    latest.source,
    finding.level,
    finding.measure,
    finding.sentence,
    finding.advice,
    finding.audit_id
FROM finding
JOIN latest_result AS latest USING (audit_id, measure)
ORDER BY
    latest.source,
    finding.audit_id,
    list_position(['problem', 'look', 'not measured', 'ok'], finding.level),
    finding.place;
