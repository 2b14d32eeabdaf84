-- Every golden query that `why` did not find: where it was lost, and since when without a break.
CREATE OR REPLACE VIEW golden_history AS
WITH looked AS (
    SELECT
        answer.subject AS store,
        answer.asked,
        answer.answer_id,
        answer.computed_id,
        answer.question_key,
        CAST(round(part.value * part.of) AS INTEGER) AS golden_found,
        CAST(part.of AS INTEGER) AS golden_queries,
        part.value AS golden_share,
        part.low AS golden_share_low,
        part.high AS golden_share_high,
        row_number() OVER (PARTITION BY answer.question_key ORDER BY answer.asked, answer.answer_id) AS night
    FROM answer
    JOIN answer_figure AS part ON part.answer_id = answer.computed_id
    WHERE answer.asks = 'why' AND part.figure = 'found' AND part.item = ''
),
lost AS (
    SELECT
        looked.*,
        told.query,
        told.expected,
        CASE WHEN told.lost = 'found' THEN told.stage ELSE told.lost END AS lost,
        told.sentence AS said,
        told.mend,
        row_number() OVER (PARTITION BY question_key, told.query, told.expected ORDER BY night) AS place
    FROM looked
    JOIN why_case AS told ON told.answer_id = looked.computed_id
    WHERE told.lost <> 'found' OR told.stage IS NOT NULL
)
SELECT
    store,
    query,
    expected,
    asked,
    min(asked) OVER (PARTITION BY question_key, query, expected, night - place) AS lost_since,
    lost,
    said,
    mend,
    golden_found,
    golden_queries,
    golden_share,
    golden_share_low,
    golden_share_high,
    answer_id
FROM lost;
