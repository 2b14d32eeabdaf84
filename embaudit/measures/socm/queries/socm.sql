-- How much does mean pooling discard, by checkpoint and corpus?
SELECT
    latest.source, corpus, pair_kind, texts, pairs, round(socm_mean, 4) AS socm_mean,
    round(socm_low, 4) AS socm_low, round(socm_high, 4) AS socm_high, round(socm_q05, 4) AS socm_q05,
    round(socm_q50, 4) AS socm_q50, round(socm_q95, 4) AS socm_q95, round(d_mu_mean, 4) AS d_mu_mean,
    round(d_sigma_mean, 4) AS d_sigma_mean, round(share_trace_above_bound, 3) AS share_trace_above_2,
    undefined, one_token, truncated, pooling_is_mean
FROM socm_summary
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
ORDER BY latest.source, corpus, audit_id;
