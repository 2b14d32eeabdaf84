-- Every look at every endpoint by `verify` or `parity`, and where its verdict changed.
CREATE OR REPLACE VIEW endpoint_history AS
WITH looked AS (
    SELECT
        answer.subject AS endpoint,
        answer.asked,
        answer.verdict,
        max(part.value) FILTER (part.figure = 'worst') AS worst,
        CAST(max(part.value) FILTER (part.figure = 'kinds_apart') AS INTEGER) AS kinds_apart,
        CAST(max(part.of) FILTER (part.figure = 'kinds_apart') AS INTEGER) AS kinds,
        answer.function AS checkpoint,
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
    * EXCLUDE (question_key, line, answer_id),
    verdict IS DISTINCT FROM lag(verdict) OVER (PARTITION BY question_key ORDER BY asked, answer_id) AS is_other_verdict,
    line,
    answer_id
FROM looked;
