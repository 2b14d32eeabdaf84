-- Which translations does each checkpoint find, does the query's own language come first, and which can it not write?
WITH severe AS (
    SELECT audit_id, script, count(*) FILTER (severity IN ('strong', 'moderate')) AS severe
    FROM sticky_token
    GROUP BY ALL
),
searched AS (SELECT DISTINCT audit_id FROM severe)
SELECT
    latest.source, name, script, declared, round(found, 3) AS found, round(found_low, 3) AS found_low,
    round(found_high, 3) AS found_high, round(words_found, 3) AS words_found, round(margin, 3) AS margin,
    round(own_above, 3) AS own_above, round(other_above, 3) AS other_above, round(1 - 1 / sentences, 3) AS chance_above,
    round(words_own_above, 3) AS words_own_above, round(centred_own_above, 3) AS centred_own_above,
    round(own_bias, 3) AS own_bias, round(own_bias_low, 3) AS own_bias_low, round(own_bias_high, 3) AS own_bias_high,
    round(english_above, 3) AS english_above, round(english_bias, 3) AS english_bias,
    round(unknown, 4) AS unknown, round(premium, 2) AS premium, round(alike, 3) AS alike,
    round(english_alike, 3) AS english_alike, same_ids, round(told_apart, 3) AS told_apart,
    CASE WHEN searched.audit_id IS NULL THEN NULL ELSE coalesce(severe, 0) END AS severe_tokens
FROM language
JOIN (FROM latest_result WHERE measure = 'languages') AS latest USING (audit_id)
LEFT JOIN searched USING (audit_id)
LEFT JOIN severe USING (audit_id, script)
ORDER BY latest.source, found DESC NULLS FIRST, language, audit_id;
