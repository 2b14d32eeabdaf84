-- Do long texts crowd neighbour lists and rankings?
SELECT
    latest.source, s.corpus, s.texts, s.tokens_median, s.beyond_configured, s.beyond_read, s.neighbours,
    round(s.hubness_spearman, 3) AS hubness_spearman, round(s.hubness_p, 4) AS hubness_p,
    round(s.neighbour_length_ratio, 3) AS neighbour_length_ratio,
    round(s.short_neighbour_length_ratio, 3) AS of_short_texts, round(s.rank_spearman, 3) AS rank_spearman,
    round(s.knn_accuracy, 3) AS knn_accuracy, round(s.wrong_length_ratio, 3) AS wrong_length_ratio,
    round(s.long_pairs_mean, 4) AS long_pairs, round(s.short_pairs_mean, 4) AS short_pairs,
    round(s.share_long_above, 3) AS share_long_above
FROM length_summary AS s
JOIN (FROM latest_result WHERE measure = 'length') AS latest USING (audit_id)
ORDER BY ALL;
