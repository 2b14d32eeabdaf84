-- Does a query find the same documents when it is written otherwise?
SELECT
    latest.source, data_set, kind, change, queries, unchanged, round(same_tokens, 3) AS same_tokens,
    round(unwritten, 3) AS unwritten, round(moved, 4) AS moved, round(overlap, 3) AS overlap,
    round(overlap_low, 3) AS overlap_low, round(overlap_high, 3) AS overlap_high, round(ndcg, 4) AS ndcg,
    round(ndcg_change, 4) AS ndcg_change, round(ndcg_change_low, 4) AS ndcg_change_low,
    round(ndcg_change_high, 4) AS ndcg_change_high, round(words_overlap, 3) AS words_overlap,
    round(words_ndcg_change, 4) AS words_ndcg_change
FROM surface
JOIN (FROM latest_result WHERE measure = 'surface') AS latest USING (audit_id)
ORDER BY latest.source, overlap NULLS LAST, change, audit_id;
