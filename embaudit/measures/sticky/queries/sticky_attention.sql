-- Do sticky tokens receive more attention than ordinary tokens, layer by layer?
SELECT
    latest.source, latest.checkpoint_id, includes_special, layer, sticky_tokens, ordinary_tokens,
    round(sticky_q50, 4) AS sticky_median, round(ordinary_q50, 4) AS ordinary_median, round(wasserstein, 4) AS wasserstein,
    round(permuted_high, 4) AS permuted_high, p_value
FROM sticky_attention
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
ORDER BY latest.source, latest.checkpoint_id, includes_special, layer;
