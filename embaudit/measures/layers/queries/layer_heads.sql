-- Which attention heads let most of the differences between tokens through (bounded by sigma_a times the norm of W_v)?
SELECT
    newest.source, corpus, layer, head, round(lambda_mean, 4) AS lambda_mean, round(sigma_a, 4) AS sigma_a,
    round(sigma_a_max, 4) AS sigma_a_max, round(sigma_a * value_norm, 4) AS sigma_a_times_value_norm,
    round(value_output_norm, 4) AS value_output_norm
FROM layer_head_stat
JOIN (SELECT DISTINCT audit_id, source FROM layer_curve) AS newest USING (audit_id)
ORDER BY newest.source, corpus, layer, head, audit_id;
