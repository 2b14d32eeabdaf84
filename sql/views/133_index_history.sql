-- Every look at every index, by a watch or `vectors`: its rows, what came and went, what is not its own, copies, what is absent, and golden queries found.
CREATE OR REPLACE VIEW index_history AS
WITH looked AS (
    SELECT * EXCLUDE (copies), copies AS new_copies, 'watch' AS series FROM index_check
    UNION ALL BY NAME
    SELECT
        answer.subject AS store,
        answer.asked,
        answer.verdict,
        CAST(max(part.value) FILTER (part.figure = 'rows') AS INTEGER) AS "rows",
        max(part.value) FILTER (part.figure = 'foreign') AS old_share,
        max(part.low) FILTER (part.figure = 'foreign') AS old_share_low,
        max(part.high) FILTER (part.figure = 'foreign') AS old_share_high,
        CAST(max(part.value) FILTER (part.figure = 'copies') AS INTEGER) AS copies,
        CAST(max(part.value) FILTER (part.figure = 'absent') AS INTEGER) AS absent,
        CAST(max(part.value) FILTER (part.figure = 'without_text') AS INTEGER) AS without_text,
        answer.line,
        answer.answer_id AS check_key,
        answer.question_key AS series
    FROM answer
    LEFT JOIN answer_figure AS part ON part.answer_id = answer.computed_id
    WHERE answer.asks = 'vectors'
    GROUP BY ALL
)
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
    new_copies,
    copies,
    absent,
    without_text,
    golden_found,
    golden_queries,
    golden_share,
    golden_share_low,
    golden_share_high,
    verdict IS DISTINCT FROM lag(verdict) OVER of_store AS is_other_verdict,
    line,
    check_key
FROM looked
WINDOW of_store AS (PARTITION BY store, series ORDER BY asked, check_key);
