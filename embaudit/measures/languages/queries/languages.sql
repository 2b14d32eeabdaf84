-- Which translations does each checkpoint find, and which languages can its tokenizer not write?
WITH severe AS (
    SELECT audit_id, script, count(*) FILTER (severity IN ('strong', 'moderate')) AS severe
    FROM sticky_token
    GROUP BY ALL
),
searched AS (SELECT DISTINCT audit_id FROM severe)
SELECT
    latest.source, name, script, declared, round(found, 3) AS found, round(found_low, 3) AS found_low,
    round(found_high, 3) AS found_high, round(words_found, 3) AS words_found, round(margin, 3) AS margin,
    round(unknown, 4) AS unknown, round(premium, 2) AS premium, round(alike, 3) AS alike,
    round(english_alike, 3) AS english_alike, same_ids, round(told_apart, 3) AS told_apart,
    CASE WHEN searched.audit_id IS NULL THEN NULL ELSE coalesce(severe, 0) END AS severe_tokens
FROM language
JOIN (FROM latest_result WHERE measure = 'languages') AS latest USING (audit_id)
LEFT JOIN searched USING (audit_id)
LEFT JOIN severe USING (audit_id, script)
ORDER BY latest.source, found DESC NULLS FIRST, language, audit_id;
