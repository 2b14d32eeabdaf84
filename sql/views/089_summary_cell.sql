-- Every cell of every summary of the published audits, one a row, the empty ones too: what a gate looks at.
CREATE OR REPLACE VIEW summary_cell AS
WITH sticky AS (
    SELECT
        audit_id, 'sticky_summary' AS summary, protocol AS item,
        u, u_ids, u_input_embeddings, reliability, control_median, threshold, CAST(sticky AS DOUBLE) AS sticky
    FROM sticky_summary
),
severity AS (
    SELECT
        audit_id, 'sticky_token' AS summary, 'retention' AS item, max(loss) AS worst_loss,
        CAST(count(*) FILTER (severity IN ('strong', 'moderate')) AS DOUBLE) AS strong_or_moderate
    FROM sticky_token
    GROUP BY audit_id
),
reference AS (
    SELECT
        audit_id, 'sticky_reference_summary' AS summary, protocol AS item, u, cutoff, threshold,
        CAST(sticky AS DOUBLE) AS sticky
    FROM sticky_reference_summary
),
socm AS (
    SELECT
        audit_id, 'socm_summary' AS summary, corpus AS item, socm_mean, socm_min, socm_max, d_mu_mean, d_sigma_mean,
        socm_q05, socm_q50, socm_q95, trace_mean, trace_max, share_trace_above_bound
    FROM socm_summary
),
layer AS (
    SELECT
        audit_id, 'layer_stat' AS summary, corpus || ', layer ' || layer AS item,
        lambda_head_mean, lambda_head_max, lambda_head_averaged_attention, lambda_multi_head_bound, lambda_gaussian,
        contraction, contraction_normed, r, c, normalised_spread, within_text_cosine, sigma_a, contraction_of_means,
        r_of_means, c_of_means, normalised_spread_of_means, value_output_norm
    FROM layer_stat
),
length AS (
    SELECT
        audit_id, 'length_rise' AS summary, corpus || ', ' || condition AS item, first_cosine, last_cosine, rise,
        share_of_natural, share_of_truncation
    FROM length_rise
),
figure AS (
    FROM sticky
    UNPIVOT INCLUDE NULLS (value FOR measure IN (COLUMNS(* EXCLUDE (audit_id, summary, item))))
    UNION ALL BY NAME
    FROM severity
    UNPIVOT INCLUDE NULLS (value FOR measure IN (COLUMNS(* EXCLUDE (audit_id, summary, item))))
    UNION ALL BY NAME
    FROM reference
    UNPIVOT INCLUDE NULLS (value FOR measure IN (COLUMNS(* EXCLUDE (audit_id, summary, item))))
    UNION ALL BY NAME
    FROM socm
    UNPIVOT INCLUDE NULLS (value FOR measure IN (COLUMNS(* EXCLUDE (audit_id, summary, item))))
    UNION ALL BY NAME
    FROM layer
    UNPIVOT INCLUDE NULLS (value FOR measure IN (COLUMNS(* EXCLUDE (audit_id, summary, item))))
    UNION ALL BY NAME
    FROM length
    UNPIVOT INCLUDE NULLS (value FOR measure IN (COLUMNS(* EXCLUDE (audit_id, summary, item))))
)
SELECT figure.audit_id, figure.summary, figure.item, figure.measure, figure.value
FROM figure
JOIN audit USING (audit_id)
WHERE audit.status = 'published';
