-- How does the size of models correlate with how sticky their vocabularies are?
-- Spearman's rho: Pearson's correlation of ranks, with average ranks for ties.
WITH figure AS (
    UNPIVOT (SELECT checkpoint_id, parameters, moderate_share, worst_loss, u FROM sticky_size)
    ON moderate_share, worst_loss, u INTO NAME measure VALUE value
),
ranked AS (
    SELECT
        measure,
        rank() OVER by_value + (count(*) OVER (PARTITION BY measure, value) - 1) / 2 AS value_rank,
        rank() OVER by_size + (count(*) OVER (PARTITION BY measure, parameters) - 1) / 2 AS size_rank
    FROM figure
    WINDOW
        by_value AS (PARTITION BY measure ORDER BY value),
        by_size AS (PARTITION BY measure ORDER BY parameters)
)
SELECT
    measure, count(*) AS checkpoints,
    -- Undefined for fewer than three points or constant ranks.
    CASE
        WHEN count(*) > 2 AND stddev_pop(value_rank) > 0 AND stddev_pop(size_rank) > 0
            THEN round(corr(value_rank, size_rank), 4)
    END AS rho
FROM ranked
GROUP BY measure
ORDER BY measure;
