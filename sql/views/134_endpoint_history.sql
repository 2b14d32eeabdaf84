-- Every look at every endpoint, by a watch, `verify` or `parity`, and where its verdict changed.
CREATE OR REPLACE VIEW endpoint_history AS
WITH looked AS (
    SELECT endpoint, asked, verdict, worst, kinds_apart, kinds, checkpoint, line, look_key
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
        answer.answer_id
    FROM answer
    LEFT JOIN answer_figure AS part USING (answer_id)
    WHERE answer.asks IN ('verify', 'parity')
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
WINDOW of_endpoint AS (PARTITION BY endpoint, checkpoint ORDER BY asked, look_key);
