-- What does a search lose with smaller vectors, and do first dimensions hold more than random ones?
SELECT
    latest.source, way, bytes, round(of_float32, 3) AS of_float32, round(recall, 4) AS recall,
    round(ndcg, 4) AS ndcg, round(ndcg_change, 4) AS ndcg_change, round(ndcg_change_low, 4) AS ndcg_change_low,
    round(ndcg_change_high, 4) AS ndcg_change_high, round(words_ndcg, 4) AS words_ndcg,
    round(random_recall, 4) AS random_recall, round(beyond_random, 4) AS beyond_random,
    round(beyond_random_low, 4) AS beyond_random_low, round(beyond_random_high, 4) AS beyond_random_high, declared
FROM compression
JOIN (FROM latest_result WHERE measure = 'compression') AS latest USING (audit_id)
ORDER BY latest.source, bytes DESC, way, audit_id;
