-- Which queries do the tokens of an arm hurt most, in each checkpoint?
SELECT
    checkpoint.source, corpus, query, held.arm, held.poisoned, round(clean.ndcg_10, 4) AS clean_ndcg_10,
    round(held.ndcg_10, 4) AS ndcg_10, round(held.ndcg_10 - clean.ndcg_10, 4) AS change,
    round(held.recall_10 - clean.recall_10, 4) AS recall_change
FROM impact_query AS held
JOIN impact_query AS clean USING (audit_id, corpus, query)
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published' AND clean.arm = 'clean' AND held.arm <> 'clean'
QUALIFY dense_rank() OVER (PARTITION BY checkpoint_id, corpus ORDER BY audit.finished DESC, audit_id) = 1
ORDER BY held.ndcg_10 - clean.ndcg_10, checkpoint.source, corpus, query, held.arm, held.poisoned, audit_id;
