-- The paper's first experiment: what do n copies of sticky and of ordinary tokens do to a fixed set of pairs?
SELECT
    latest.source, latest.checkpoint_id, role, token_id, token, pairs, round(delta_mean, 3) AS delta_mean,
    round(delta_q05, 3) AS delta_q05, round(delta_q50, 3) AS delta_q50, round(delta_q95, 3) AS delta_q95,
    round(compression, 3) AS compression, round(slope, 3) AS slope
FROM sticky_shift_by_token
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
ORDER BY latest.source, latest.checkpoint_id, role DESC, slope, token_id;
