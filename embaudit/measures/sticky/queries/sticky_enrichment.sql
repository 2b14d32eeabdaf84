-- Which origins and scripts are over-represented among the tokens with the lowest retention, and among the flagged ones?
SELECT
    latest.source, latest.checkpoint_id, selection, attribute, value, selected_with, selected,
    round(share_selected, 3) AS share_selected, round(share_scanned, 4) AS share_scanned, round(fold, 1) AS fold,
    round(odds_ratio, 1) AS odds_ratio, p_value, q_value
FROM sticky_enrichment
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
WHERE selected_with > 0 AND fold > 1
QUALIFY row_number() OVER (PARTITION BY audit_id, selection, attribute ORDER BY p_value, fold DESC, value) <= 5
ORDER BY latest.source, latest.checkpoint_id, selection, attribute, fold DESC, value;
