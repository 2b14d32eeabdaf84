-- How many rows did each index have night by night, what came, went, was not its own, copied or absent, and what share of golden queries did it find?
SELECT
    store, asked, verdict, "rows", change, added, removed, new_foreign, round(old_share, 3) AS foreign_share, copies,
    absent, golden_found AS found, golden_queries AS queries, round(golden_share, 3) AS recall,
    round(golden_share_low, 3) AS low, round(golden_share_high, 3) AS high
FROM index_history
ORDER BY store, asked DESC, check_key;
