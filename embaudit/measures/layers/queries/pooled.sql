-- How alike are a text's token states at pooling, after the final norm if the model has one?
SELECT
    newest.source, corpus, has_final_norm, texts, round(normalised_spread, 4) AS normalised_spread,
    round(normalised_spread_of_means, 4) AS spread_of_means, round(within_text_cosine, 4) AS within_text_cosine,
    round(within_text_cosine_low, 4) AS cosine_low, round(within_text_cosine_high, 4) AS cosine_high
FROM pooled_stat
JOIN (SELECT DISTINCT audit_id, source FROM layer_curve) AS newest USING (audit_id)
ORDER BY newest.source, corpus, audit_id;
