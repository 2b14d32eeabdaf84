-- What does a checkpoint find that its words alone do not, and which threshold lets 1 % of unrelated pairs through?
SELECT
    latest.source, data_set, kind, items, round(score, 4) AS score, round(words_score, 4) AS words_score,
    round(words_gain, 4) AS words_gain, round(words_gain_low, 4) AS words_gain_low,
    round(words_gain_high, 4) AS words_gain_high, round(input_score, 4) AS input_score, round(auc, 4) AS auc,
    round(threshold, 3) AS threshold, round(kept, 3) AS kept, round(directions, 1) AS directions,
    round(separation, 2) AS separation
FROM quality
JOIN (FROM latest_result WHERE measure = 'quality') AS latest USING (audit_id)
ORDER BY latest.source, kind, data_set, audit_id;
