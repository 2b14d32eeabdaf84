-- What was found in each checkpoint and in each answer, in words, worst first, by its newest results?
SELECT source, level, measure, sentence, advice, audit_id
FROM (
    SELECT latest.source, finding.level, finding.measure, finding.sentence, finding.advice, finding.audit_id, finding.place
    FROM finding
    JOIN latest_result AS latest USING (audit_id, measure)
    UNION ALL
    SELECT
        latest.subject, found.level, latest.asks, found.sentence, nullif(found.advice, ''), latest.answer_id, found.place
    FROM answer_finding AS found
    JOIN latest_answer AS latest ON latest.computed_id = found.answer_id
)
ORDER BY source, audit_id, list_position(['problem', 'look', 'not measured', 'ok'], level), place, measure;
