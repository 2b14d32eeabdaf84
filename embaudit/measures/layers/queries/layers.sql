-- Where in the network are a text's tokens pulled together?
SELECT
    newest.source, corpus, layer, norm_placement, texts, round(lambda_head_mean, 4) AS lambda_head_mean,
    round(lambda_head_averaged_attention, 4) AS lambda_averaged, round(lambda_gaussian, 4) AS lambda_gaussian,
    round(contraction, 4) AS contraction, round(r, 4) AS r, round(c, 4) AS c,
    round(normalised_spread, 4) AS normalised_spread, round(normalised_spread_of_means, 4) AS spread_of_means,
    round(within_text_cosine, 4) AS within_text_cosine, round(sigma_a, 4) AS sigma_a
FROM layer_stat
JOIN (SELECT DISTINCT audit_id, source FROM layer_curve) AS newest USING (audit_id)
ORDER BY newest.source, corpus, layer, audit_id;
