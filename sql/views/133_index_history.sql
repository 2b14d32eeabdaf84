-- Every look at every index by `vectors`: its rows, what came and went, what is not its own, copies, and what is absent.
CREATE OR REPLACE VIEW index_history AS
WITH looked AS (
    SELECT
        answer.subject AS store,
        answer.asked,
        answer.verdict,
        CAST(max(part.value) FILTER (part.figure = 'rows') AS BIGINT) AS "rows",
        CAST(max(part.value) FILTER (part.figure = 'added') AS BIGINT) AS added,
        CAST(max(part.value) FILTER (part.figure = 'overwritten') AS BIGINT) AS overwritten,
        CAST(max(part.value) FILTER (part.figure = 'removed') AS BIGINT) AS removed,
        CAST(max(part.value) FILTER (part.figure = 'new_foreign') AS BIGINT) AS new_foreign,
        max(part.value) FILTER (part.figure = 'foreign') AS foreign_share,
        max(part.low) FILTER (part.figure = 'foreign') AS foreign_share_low,
        max(part.high) FILTER (part.figure = 'foreign') AS foreign_share_high,
        CAST(max(part.value) FILTER (part.figure = 'copies') AS BIGINT) AS copies,
        CAST(max(part.value) FILTER (part.figure = 'absent') AS BIGINT) AS absent,
        CAST(max(part.value) FILTER (part.figure = 'without_text') AS BIGINT) AS without_text,
        answer.line,
        answer.answer_id,
        answer.question_key
    FROM answer
    LEFT JOIN answer_figure AS part ON part.answer_id = answer.computed_id
    WHERE answer.asks = 'vectors'
    GROUP BY ALL
)
SELECT
    * EXCLUDE (question_key, line, answer_id),
    "rows" - lag("rows" IGNORE NULLS) OVER of_store AS change,
    verdict IS DISTINCT FROM lag(verdict) OVER of_store AS is_other_verdict,
    line,
    answer_id
FROM looked
WINDOW of_store AS (PARTITION BY question_key ORDER BY asked, answer_id);
