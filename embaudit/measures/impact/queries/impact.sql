-- What do sticky tokens do to retrieval, clustering, classification and similarity, compared with ordinary tokens?
SELECT
    latest.source, corpus, metric, arm, poisoned, tokens, round(score, 4) AS score, round(change, 4) AS change,
    round(change_low, 4) AS change_low, round(change_high, 4) AS change_high, round(beyond, 4) AS beyond,
    round(beyond_low, 4) AS beyond_low, round(beyond_high, 4) AS beyond_high, items, held, round(copies, 1) AS copies
FROM impact
JOIN (FROM latest_result WHERE measure = 'impact') AS latest USING (audit_id)
ORDER BY latest.source, corpus, metric, poisoned <> 'none', poisoned, arm <> 'ordinary', arm, audit_id;
