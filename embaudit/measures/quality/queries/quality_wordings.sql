-- What does each checkpoint find with other wordings of the instruction before a query?
SELECT
    latest.source, data_set, wording, prompt, is_declared, queries, round(score, 4) AS score,
    round(score_low, 4) AS low, round(score_high, 4) AS high, round(change, 4) AS change,
    round(change_low, 4) AS change_low, round(change_high, 4) AS change_high, round(words_score, 4) AS words_score,
    round(max(score) OVER every - min(score) OVER every, 4) AS spread
FROM quality_wording
JOIN (FROM latest_result WHERE measure = 'quality') AS latest USING (audit_id)
WINDOW every AS (PARTITION BY audit_id, data_set)
ORDER BY latest.source, data_set, score DESC, wording, audit_id;
