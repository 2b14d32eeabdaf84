-- What chunk size does each checkpoint want: whole documents, their best piece, or the mean of their pieces?
SELECT
    latest.source, 'all queries' AS part, way, size, queries, round(score, 4) AS score,
    round(score_low, 4) AS score_low, round(score_high, 4) AS score_high, round(gain, 4) AS gain,
    round(gain_low, 4) AS gain_low, round(gain_high, 4) AS gain_high, round(words_score, 4) AS words_score,
    latest.audit_id
FROM chunk
JOIN (FROM latest_result WHERE measure = 'chunks') AS latest USING (audit_id)
UNION ALL
SELECT
    latest.source, part, way, size, queries, round(score, 4), round(score_low, 4), round(score_high, 4),
    round(gain, 4), round(gain_low, 4), round(gain_high, 4), round(words_score, 4), latest.audit_id
FROM chunk_length
JOIN (FROM latest_result WHERE measure = 'chunks') AS latest USING (audit_id)
ORDER BY ALL;
