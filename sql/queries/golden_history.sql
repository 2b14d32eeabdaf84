-- Which golden queries were lost on which nights, since when and where, and what share was found?
SELECT
    store, query, asked, lost_since, lost, golden_found AS found, golden_queries AS queries,
    round(golden_share, 3) AS share, round(golden_share_low, 3) AS share_low, round(golden_share_high, 3) AS share_high,
    expected, mend, said
FROM golden_history
ORDER BY store, query, asked DESC, answer_id;
