-- How many rows did each index have night by night, what came, went, was not its own, copied or absent?
SELECT
    store, asked, verdict, "rows", change, added, overwritten, removed, new_foreign,
    round(foreign_share, 3) AS foreign_share, copies, absent
FROM index_history
ORDER BY store, asked DESC, answer_id;
