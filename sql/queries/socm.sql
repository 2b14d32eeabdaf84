-- How much does mean pooling throw away, by checkpoint and corpus?
SELECT
    latest_audit.source, corpus, texts, pairs, round(socm_mean, 4) AS socm_mean, round(socm_low, 4) AS socm_low,
    round(socm_high, 4) AS socm_high, round(d_mu_mean, 4) AS d_mu_mean, round(d_sigma_mean, 4) AS d_sigma_mean,
    round(share_trace_above_bound, 3) AS share_trace_above_2, pooling_is_mean
FROM socm_summary
JOIN latest_audit USING (audit_id)
ORDER BY latest_audit.source, corpus;
