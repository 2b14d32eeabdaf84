-- The layer curves of the papers' figures, one row per point and measure, from each checkpoint's newest results.
CREATE OR REPLACE VIEW layer_curve AS
WITH newest AS (
    SELECT audit_id, checkpoint_id FROM latest_result WHERE measure = 'layers'
),
point AS (
    SELECT audit_id, corpus, layer, 'lambda_head_mean' AS measure, lambda_head_mean AS mean, lambda_head_mean_low AS low, lambda_head_mean_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'lambda_head_max' AS measure, lambda_head_max AS mean, lambda_head_max_low AS low, lambda_head_max_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'lambda_head_averaged_attention' AS measure, lambda_head_averaged_attention AS mean, lambda_head_averaged_attention_low AS low, lambda_head_averaged_attention_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'lambda_multi_head_bound' AS measure, lambda_multi_head_bound AS mean, lambda_multi_head_bound_low AS low, lambda_multi_head_bound_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'lambda_gaussian' AS measure, lambda_gaussian AS mean, lambda_gaussian_low AS low, lambda_gaussian_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'contraction' AS measure, contraction AS mean, contraction_low AS low, contraction_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'contraction_normed' AS measure, contraction_normed AS mean, contraction_normed_low AS low, contraction_normed_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'r' AS measure, r AS mean, r_low AS low, r_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'c' AS measure, c AS mean, c_low AS low, c_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'normalised_spread' AS measure, normalised_spread AS mean, normalised_spread_low AS low, normalised_spread_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'within_text_cosine' AS measure, within_text_cosine AS mean, within_text_cosine_low AS low, within_text_cosine_high AS high, texts FROM layer_stat
    UNION ALL
    SELECT audit_id, corpus, layer, 'sigma_a' AS measure, sigma_a AS mean, sigma_a_low AS low, sigma_a_high AS high, texts FROM layer_stat
)
SELECT checkpoint.source, newest.checkpoint_id, point.*
FROM point
JOIN newest USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
WHERE mean IS NOT NULL;
