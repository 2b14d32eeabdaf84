-- Do hard negatives look more alike after pooling than random pairs of the same queries and passages?
SELECT
    latest.source, corpus, distance, pairs, queries, round(listed_mean, 4) AS listed_mean,
    round(random_mean, 4) AS random_mean, round(difference, 4) AS difference,
    round(difference_low, 4) AS difference_low, round(difference_high, 4) AS difference_high
FROM socm_contrast
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
ORDER BY latest.source, corpus, distance, socm_contrast.audit_id;
