-- Which score would a checkpoint have if its network stopped after each layer?
SELECT
    latest.source, data_set, kind, layer, round(score, 4) AS score, round(score_low, 4) AS score_low,
    round(score_high, 4) AS score_high,
    round(score - lag(score) OVER (PARTITION BY audit_id, data_set, kind ORDER BY layer), 4) AS step
FROM quality_layer
JOIN (FROM latest_result WHERE measure = 'quality') AS latest USING (audit_id)
ORDER BY latest.source, kind, data_set, audit_id, layer;
