-- How much more alike are long texts than short ones, and how much of that needs no attention?
SELECT
    source, corpus, condition, low, high, round(length, 1) AS length, beyond_limit, texts,
    round(cosine_mean, 4) AS cosine, round(cosine_low, 4) AS low_95, round(cosine_high, 4) AS high_95,
    round(risen, 4) AS risen, round(share_of_natural, 3) AS share_of_natural,
    round(share_of_truncation, 3) AS share_of_truncation
FROM length_curve
LEFT JOIN length_rise USING (audit_id, corpus, condition)
ORDER BY source, corpus, low, condition, audit_id;
