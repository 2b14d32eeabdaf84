-- Do the input embeddings of sticky tokens differ, in norm or in cosine to the vocabulary's mean?
SELECT
    latest.source, latest.checkpoint_id, selection, attribute, selected, round(selected_median, 4) AS selected_median,
    round(scanned_median, 4) AS scanned_median, round(auc, 3) AS auc, p_value
FROM sticky_enrichment
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
WHERE attribute IN ('embedding_norm', 'cosine_to_mean')
ORDER BY latest.source, latest.checkpoint_id, selection, attribute, value;
