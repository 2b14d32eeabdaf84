-- Every look at every watched index: its rows, what came and went, what is not its own, and golden queries found.
CREATE OR REPLACE VIEW index_history AS
SELECT
    store,
    asked,
    verdict,
    "rows",
    "rows" - lag("rows" IGNORE NULLS) OVER of_store AS change,
    most_rows,
    added,
    overwritten,
    removed,
    new_foreign,
    old_foreign,
    old_share,
    old_share_low,
    old_share_high,
    golden_found,
    golden_queries,
    golden_share,
    golden_share_low,
    golden_share_high,
    verdict IS DISTINCT FROM lag(verdict) OVER of_store AS is_other_verdict,
    line,
    check_key
FROM index_check
WINDOW of_store AS (PARTITION BY store ORDER BY asked, check_key);
