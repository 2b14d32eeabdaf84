-- The differences of backbone_delta with 95 % intervals.
-- Paired over texts if both audits have the rows of each text; otherwise from the two audits' own intervals (MOVER), as
-- for different texts, which is too wide.
CREATE OR REPLACE VIEW backbone_change AS
WITH linked AS (
    SELECT audit_id, backbone_audit_id FROM audit_backbone
),
same_layer AS (
    -- Only if the texts are the same: a corpus of the same name may have others.
    SELECT linked.*, own.corpus, own.layer, own.texts
    FROM linked
    JOIN layer_stat AS own ON own.audit_id = linked.audit_id
    JOIN layer_stat AS other
        ON other.audit_id = linked.backbone_audit_id AND other.corpus = own.corpus
        AND other.corpus_id = own.corpus_id AND other.layer = own.layer AND other.texts = own.texts
),
by_text AS (
    UNPIVOT (
        SELECT
            same_layer.*, own.position,
            own.lambda_head_mean - other.lambda_head_mean AS lambda_head_mean,
            own.lambda_head_max - other.lambda_head_max AS lambda_head_max,
            own.lambda_head_averaged_attention - other.lambda_head_averaged_attention AS lambda_head_averaged_attention,
            own.lambda_multi_head_bound - other.lambda_multi_head_bound AS lambda_multi_head_bound,
            own.lambda_gaussian - other.lambda_gaussian AS lambda_gaussian,
            own.contraction - other.contraction AS contraction,
            own.contraction_normed - other.contraction_normed AS contraction_normed,
            own.r - other.r AS r,
            own.c - other.c AS c,
            own.normalised_spread - other.normalised_spread AS normalised_spread,
            own.within_text_cosine - other.within_text_cosine AS within_text_cosine,
            own.sigma_a - other.sigma_a AS sigma_a
        FROM same_layer
        JOIN layer_text AS own
            ON own.audit_id = same_layer.audit_id AND own.corpus = same_layer.corpus AND own.layer = same_layer.layer
        JOIN layer_text AS other
            ON other.audit_id = same_layer.backbone_audit_id AND other.corpus = own.corpus
            AND other.layer = own.layer AND other.position = own.position
    )
    ON lambda_head_mean, lambda_head_max, lambda_head_averaged_attention, lambda_multi_head_bound, lambda_gaussian,
        contraction, contraction_normed, r, c, normalised_spread, within_text_cosine, sigma_a
    INTO NAME measure VALUE change
),
of_layers AS (
    SELECT
        audit_id, backbone_audit_id, corpus, layer, measure,
        avg(change) - 1.96 * stddev_samp(change) / sqrt(count(*)) AS low,
        avg(change) + 1.96 * stddev_samp(change) / sqrt(count(*)) AS high
    FROM by_text
    GROUP BY audit_id, backbone_audit_id, corpus, layer, measure
    -- As many texts as the means are of, ten at least, and not all with the same difference.
    HAVING count(*) = max(texts) AND count(*) >= 10 AND stddev_samp(change) > 0
),
last_layer AS (
    -- Where the states that are pooled are the last layer's: no norm follows it, and no text is left out there.
    SELECT pooled.audit_id, pooled.corpus, max(layer) AS layer
    FROM pooled_stat AS pooled
    JOIN layer_stat USING (audit_id, corpus)
    WHERE NOT pooled.has_final_norm AND pooled.texts = layer_stat.texts
    GROUP BY ALL
),
paired AS (
    SELECT
        audit_id, backbone_audit_id, 'layer_stat' AS summary, corpus || ', layer ' || layer AS item, measure, low, high
    FROM of_layers
    UNION ALL
    SELECT audit_id, backbone_audit_id, 'pooled_stat' AS summary, corpus AS item, measure, low, high
    FROM of_layers
    JOIN last_layer AS own USING (audit_id, corpus, layer)
    WHERE EXISTS (
        SELECT 1 FROM last_layer AS other
        WHERE other.audit_id = of_layers.backbone_audit_id AND other.corpus = of_layers.corpus
            AND other.layer = of_layers.layer
    )
    UNION ALL
    SELECT
        audit_id, backbone_audit_id, 'socm_summary' AS summary, corpus AS item, 'socm_mean' AS measure, change_low,
        change_high
    FROM backbone_socm_change
    WHERE change_low < change_high
),
of_two AS (
    SELECT
        delta.audit_id, delta.backbone_audit_id, delta.summary, delta.item, delta.measure,
        delta.delta - sqrt((delta.value - own.low) ** 2 + (other.high - delta.backbone_value) ** 2) AS low,
        delta.delta + sqrt((own.high - delta.value) ** 2 + (delta.backbone_value - other.low) ** 2) AS high
    FROM backbone_delta AS delta
    JOIN summary_interval AS own USING (audit_id, summary, item, measure)
    JOIN summary_interval AS other
        ON other.audit_id = delta.backbone_audit_id AND other.summary = delta.summary AND other.item = delta.item
        AND other.measure = delta.measure
    WHERE own.low IS NOT NULL AND other.low IS NOT NULL
)
SELECT
    delta.*,
    coalesce(paired.low, of_two.low) AS delta_low,
    coalesce(paired.high, of_two.high) AS delta_high,
    CASE WHEN paired.low IS NOT NULL THEN 'paired' WHEN of_two.low IS NOT NULL THEN 'unpaired' END AS interval_is
FROM backbone_delta AS delta
LEFT JOIN paired USING (audit_id, backbone_audit_id, summary, item, measure)
LEFT JOIN of_two USING (audit_id, backbone_audit_id, summary, item, measure);
