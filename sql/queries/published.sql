-- How far are our figures from the published ones?
SELECT
    source, measure, corpus, round(own, 4) AS own, round(own_low, 4) AS own_low, round(own_high, 4) AS own_high,
    round(published, 4) AS published, round(difference, 4) AS difference, own_texts, own_texts_from, pooling,
    published_checkpoint, matched_by, published_in
FROM published_beside_own
ORDER BY source, checkpoint_id, measure, corpus;
