-- Every look at every endpoint, by a watch, `verify` or `parity`, and where its verdict changed.
CREATE OR REPLACE VIEW endpoint_history AS
WITH looked AS (
    SELECT endpoint, asked, verdict, worst, kinds_apart, kinds, checkpoint, line, look_key, 'watch' AS series
    FROM served
    UNION ALL
    SELECT
        answer.function,
        answer.asked,
        answer.verdict,
        max(part.value) FILTER (part.figure = 'worst'),
        CAST(max(part.value) FILTER (part.figure = 'kinds_apart') AS INTEGER),
        CAST(max(part.of) FILTER (part.figure = 'kinds_apart') AS INTEGER),
        answer.subject,
        answer.line,
        answer.answer_id,
        answer.question_key
    FROM answer
    LEFT JOIN answer_figure AS part ON part.answer_id = answer.computed_id
    -- What can be told by its content alone is no endpoint.
    WHERE answer.asks IN ('verify', 'parity') AND answer.content_key IS NULL
    GROUP BY ALL
)
SELECT
    endpoint,
    asked,
    verdict,
    verdict IS DISTINCT FROM lag(verdict) OVER of_endpoint AS is_other_verdict,
    worst,
    kinds_apart,
    kinds,
    checkpoint,
    line,
    look_key
FROM looked
WINDOW of_endpoint AS (PARTITION BY endpoint, series ORDER BY asked, look_key);
