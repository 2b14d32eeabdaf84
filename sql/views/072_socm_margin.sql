-- Data for a plot: marginal histograms of d_mu and d_sigma over all pairs, in fifty bins from 0 to the corpus's largest value.
CREATE OR REPLACE VIEW socm_margin AS
WITH placed AS (
    SELECT
        audit_id, corpus, axis, value,
        greatest(max(value) OVER (PARTITION BY audit_id, corpus, axis), 1e-9) / 50 AS width
    FROM (
        SELECT audit_id, corpus, 'd_mu' AS axis, d_mu AS value FROM socm_value
        UNION ALL
        SELECT audit_id, corpus, 'd_sigma' AS axis, d_sigma AS value FROM socm_value
    ) AS unpivoted
)
SELECT
    audit_id, corpus, axis, bin, round(bin * width, 6) AS low, round((bin + 1) * width, 6) AS high, count(*) AS pairs
FROM (SELECT *, least(greatest(floor(value / width), 0), 49)::INTEGER AS bin FROM placed) AS binned
GROUP BY audit_id, corpus, axis, bin, width;
