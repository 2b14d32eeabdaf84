-- Did fine-tuning change the average SOCM by more than the choice of texts can explain?
SELECT DISTINCT
    backbone_delta.source, backbone_delta.backbone, change.corpus, change.texts, round(change, 4) AS change,
    round(change_low, 4) AS change_low, round(change_high, 4) AS change_high
FROM backbone_socm_change AS change
JOIN backbone_delta USING (audit_id, backbone_audit_id)
ORDER BY ALL;
