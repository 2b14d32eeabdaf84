-- Which texts without content stand among the results, or above all relevant ones?
SELECT
    latest.source, data_set, kind, texts, queries, round(met, 3) AS met, round(met_low, 3) AS met_low,
    round(met_high, 3) AS met_high, round(chance, 3) AS chance, round(words_met, 3) AS words_met,
    round(above, 3) AS above, round(above_low, 3) AS above_low, round(above_high, 3) AS above_high,
    round(words_above, 3) AS words_above, worst_text
FROM attractor
JOIN (FROM latest_result WHERE measure = 'attractors') AS latest USING (audit_id)
ORDER BY latest.source, above DESC, met DESC, kind, audit_id;
