-- How much of the difference between two texts do mean and covariance capture, and what would SIF weights change?
SELECT
    latest.source, corpus, count(*) AS sampled_pairs,
    round(avg(gaussian_w2_squared / nullif(w2_squared, 0)), 4) AS gaussian_share_of_w2,
    round(min(gaussian_w2_squared / nullif(w2_squared, 0)), 4) AS smallest_share,
    round(avg(socm) FILTER (socm_sif IS NOT NULL), 4) AS socm_plain,
    round(avg(socm_sif), 4) AS socm_sif,
    round(avg(socm_sif_removed), 4) AS socm_sif_removed,
    round(avg(d_sigma) FILTER (socm_sif IS NOT NULL), 4) AS d_sigma_plain,
    round(avg(d_sigma_sif), 4) AS d_sigma_sif,
    max(share_cosine_above_bound) AS share_cosine_above_third,
    max(share_bounds_agree) AS share_bounds_agree
FROM socm_tightness
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
JOIN socm_summary USING (audit_id, corpus)
GROUP BY latest.source, latest.audit_id, corpus
ORDER BY latest.source, latest.audit_id, corpus;
