-- What did fine-tuning change, in every summary figure that a checkpoint and its backbone both have?
SELECT
    source, backbone, summary, item, measure, round(backbone_value, 4) AS backbone_value, round(value, 4) AS value,
    round(delta, 4) AS delta, round(delta_low, 4) AS delta_low, round(delta_high, 4) AS delta_high, interval_is
FROM backbone_change
ORDER BY source, backbone, summary, item, measure, audit_id, backbone_audit_id;
