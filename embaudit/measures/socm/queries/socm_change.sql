-- How much of a change of SOCM from the previous revision or the backbone remains for texts of equal length?
SELECT
    coalesce(audit.settings ->> '$.source', '') AS source, other_is, corpus, round(change, 4) AS change,
    round(trace_change, 3) AS trace_change, tokens, round(change_at_length, 4) AS change_at_length,
    round(trace_change_at_length, 3) AS trace_change_at_length, is_beyond_noise, texts, other_texts,
    socm_change.audit_id, other_audit_id
FROM socm_change
LEFT JOIN audit USING (audit_id)
ORDER BY audit.finished DESC NULLS LAST, socm_change.audit_id, other_audit_id, other_is, corpus, tokens;
