-- What is SOCM at equal length: for texts cut to a fixed length, and for whole texts by the lengths of both?
SELECT
    latest.source, corpus, 'cut' AS what, tokens AS shorter, tokens AS longer, texts, pairs,
    round(socm_mean, 4) AS socm_mean, round(socm_low, 4) AS socm_low, round(socm_high, 4) AS socm_high,
    round(trace_mean, 3) AS trace_mean
FROM socm_cut
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
UNION ALL
SELECT
    latest.source, corpus, 'whole', shorter, longer, texts, pairs, round(socm_mean, 4), round(socm_low, 4),
    round(socm_high, 4), round(trace_mean, 3)
FROM socm_length
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
ORDER BY ALL;
