-- How many rows did each watched index have night by night, what came, went and was not its own, and when did its verdict change?
SELECT
    store, asked, verdict, "rows", change, added, overwritten, removed, new_foreign, old_foreign, most_rows
FROM index_history
ORDER BY store, asked DESC, check_key;
