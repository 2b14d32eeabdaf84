-- Did its function build what is in each watched index, by the last look, and what is wrong with it?
SELECT
    store, verdict, asked, "rows", added, removed, new_foreign, old_foreign,
    concat(golden_found, ' of ' || golden_queries) AS golden,
    max(asked) FILTER (verdict = 'wholly its own') OVER of_store AS last_right, line
FROM index_check
WINDOW of_store AS (PARTITION BY store)
QUALIFY row_number() OVER (PARTITION BY store ORDER BY asked DESC, check_key) = 1
ORDER BY verdict = 'wholly its own', store;
