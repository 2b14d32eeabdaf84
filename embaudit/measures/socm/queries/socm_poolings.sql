-- Which pooling of the same token states ranks texts most like all their tokens do, and how much does one vector keep?
SELECT
    latest.source, corpus, socm_pooling.pooling, is_served, texts, round(correlation, 3) AS correlation,
    round(correlation_low, 3) AS correlation_low, round(correlation_high, 3) AS correlation_high,
    round(kept, 3) AS kept, round(kept_low, 3) AS kept_low, round(kept_high, 3) AS kept_high,
    round(cosine_to_mean, 3) AS cosine_to_mean
FROM socm_pooling
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
ORDER BY latest.source, corpus, correlation DESC NULLS LAST, socm_pooling.pooling, socm_pooling.audit_id;
