-- Which queries do the tokens of an arm hurt most, in each checkpoint?
SELECT
    latest.source, corpus, query, held.arm, held.poisoned, round(clean.ndcg_10, 4) AS clean_ndcg_10,
    round(held.ndcg_10, 4) AS ndcg_10, round(held.ndcg_10 - clean.ndcg_10, 4) AS change,
    round(held.recall_10 - clean.recall_10, 4) AS recall_change
FROM impact_query AS held
JOIN impact_query AS clean USING (audit_id, corpus, query)
JOIN (FROM latest_result WHERE measure = 'impact') AS latest USING (audit_id)
WHERE clean.arm = 'clean' AND held.arm <> 'clean'
ORDER BY held.ndcg_10 - clean.ndcg_10, latest.source, corpus, query, held.arm, held.poisoned, audit_id;
