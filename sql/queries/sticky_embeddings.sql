-- Do the input embeddings of sticky tokens differ, in norm or in cosine to the vocabulary's mean?
SELECT
    latest_audit.source, latest_audit.checkpoint_id, selection, attribute, selected, round(selected_median, 4) AS selected_median,
    round(scanned_median, 4) AS scanned_median, round(auc, 3) AS auc, p_value
FROM sticky_enrichment
JOIN latest_audit USING (audit_id)
WHERE attribute IN ('embedding_norm', 'cosine_to_mean')
ORDER BY latest_audit.source, latest_audit.checkpoint_id, selection, attribute, value;
