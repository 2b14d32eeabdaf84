-- Would another pooling, prompt, case, limit or similarity do better than what the checkpoint declares?
SELECT
    latest.source, reading, aspect, data_set, kind, round(gain, 4) AS gain, round(gain_low, 4) AS gain_low,
    round(gain_high, 4) AS gain_high
FROM quality_reading
JOIN (FROM latest_result WHERE measure = 'quality') AS latest USING (audit_id)
ORDER BY latest.source, avg(gain) OVER (PARTITION BY audit_id, reading) DESC, reading, kind, data_set, audit_id;
