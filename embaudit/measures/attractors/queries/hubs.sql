-- Which documents come up for most texts, and what do they cost?
SELECT
    latest.source, data_set, rank, text, words, occurrences, words_occurrences, round(met, 3) AS met, relevant,
    above_relevant, round(skew, 2) AS skew, round(words_skew, 2) AS words_skew, round(random_skew, 2) AS random_skew
FROM hub
JOIN attractor_summary USING (audit_id, data_set)
JOIN (FROM latest_result WHERE measure = 'attractors') AS latest USING (audit_id)
ORDER BY latest.source, rank, audit_id, data_set;
