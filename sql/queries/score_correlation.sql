-- How do average SOCM and spread correlate with downstream scores across checkpoints (p-values: embaudit scores correlate)?
-- Spearman's rho: Pearson's correlation of ranks, with average ranks for ties.
WITH ranked AS (
    SELECT
        measure, corpus, task,
        rank() OVER by_value + (count(*) OVER (PARTITION BY measure, corpus, task, value) - 1) / 2 AS value_rank,
        rank() OVER by_score + (count(*) OVER (PARTITION BY measure, corpus, task, score) - 1) / 2 AS score_rank
    FROM score_beside_measure
    WINDOW
        by_value AS (PARTITION BY measure, corpus, task ORDER BY value),
        by_score AS (PARTITION BY measure, corpus, task ORDER BY score)
)
SELECT
    measure, corpus, task, count(*) AS checkpoints,
    -- Undefined for fewer than three points or constant ranks.
    CASE
        WHEN count(*) > 2 AND stddev_pop(value_rank) > 0 AND stddev_pop(score_rank) > 0
            THEN round(corr(value_rank, score_rank), 4)
    END AS rho
FROM ranked
GROUP BY measure, corpus, task
ORDER BY measure, corpus, task;
