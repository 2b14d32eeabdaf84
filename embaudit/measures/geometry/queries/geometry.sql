-- How do the vectors of a corpus fill their space, and which dimensions dominate their cosines?
WITH top AS (
    SELECT audit_id, corpus, string_agg(dimension, ' ' ORDER BY rank) AS top_dimensions
    FROM geometry_dimension
    WHERE rank <= 3
    GROUP BY ALL
)
SELECT
    latest.source, corpus, texts, dimension, round(mean_cosine, 4) AS mean_cosine, round(isoscore, 4) AS isoscore,
    round(effective_rank, 1) AS effective_rank, round(rankme, 1) AS rankme, round(uniformity, 3) AS uniformity,
    round(variance_1, 4) AS variance_1, round(variance_3, 4) AS variance_3, round(variance_10, 4) AS variance_10,
    dimensions_for_half, top_dimensions, round(hubness_skewness, 3) AS hubness_skewness,
    round(anti_hubs, 4) AS anti_hubs
FROM geometry
JOIN (FROM latest_result WHERE measure = 'geometry') AS latest USING (audit_id)
LEFT JOIN top USING (audit_id, corpus)
ORDER BY latest.source, corpus, audit_id;
