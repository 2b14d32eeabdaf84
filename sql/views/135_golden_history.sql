-- Every golden query that a look at a watched index, or `why`, did not find: where it was lost, and since when without a break.
CREATE OR REPLACE VIEW golden_history AS
WITH looked AS (
    SELECT
        store,
        asked,
        check_key,
        golden_found,
        golden_queries,
        golden_share,
        golden_share_low,
        golden_share_high,
        golden_lost,
        row_number() OVER (PARTITION BY store ORDER BY asked, check_key) AS night,
        'watch' AS series
    FROM index_check
    WHERE golden_queries IS NOT NULL
    UNION ALL
    SELECT
        answer.subject,
        answer.asked,
        answer.answer_id,
        CAST(round(part.value * part.of) AS INTEGER),
        CAST(part.of AS INTEGER),
        part.value,
        part.low,
        part.high,
        (
            SELECT to_json(list(
                {'query': query, 'expected': expected, 'lost': lost, 'said': sentence, 'mend': mend} ORDER BY place
            ) FILTER (lost <> 'found'))
            FROM why_case
            WHERE why_case.answer_id = answer.computed_id
        ),
        row_number() OVER (PARTITION BY answer.question_key ORDER BY answer.asked, answer.answer_id),
        answer.question_key
    FROM answer
    JOIN answer_figure AS part ON part.answer_id = answer.computed_id
    WHERE answer.asks = 'why' AND part.figure = 'found'
),
lost AS (
    SELECT * EXCLUDE (golden_lost), unnest(json_extract(golden_lost, '$[*]')) AS query FROM looked
)
SELECT
    store,
    query ->> '$.query' AS query,
    query ->> '$.expected' AS expected,
    asked,
    min(asked) OVER (PARTITION BY store, series, query ->> '$.query', query ->> '$.expected', night - place) AS lost_since,
    query ->> '$.lost' AS lost,
    query ->> '$.said' AS said,
    query ->> '$.mend' AS mend,
    golden_found,
    golden_queries,
    golden_share,
    golden_share_low,
    golden_share_high,
    check_key
FROM (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY store, series, query ->> '$.query', query ->> '$.expected' ORDER BY night
        ) AS place
    FROM lost
);
