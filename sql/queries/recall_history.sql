-- How did the recall of each index's search change over time, by setting?
SELECT
    store, setting, asked, round(recall, 3) AS recall, round(recall_low, 3) AS recall_low,
    round(recall_high, 3) AS recall_high, round(change, 3) AS change, queries, verdict
FROM recall_history
ORDER BY store, setting, asked DESC, answer_id;
