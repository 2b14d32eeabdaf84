-- Did its function build what is in each watched index, which rows not, and by which passport was it held?
SELECT
    store, verdict, asked, since, added, overwritten, removed, new_encoded, new_foreign, new_share, new_share_low,
    new_share_high, old_share_high, zeros, not_finite, copies, other_dimensions, golden_found, golden_queries,
    golden_lost, function, checkpoint_id, passport_id,
    max(asked) FILTER (verdict = 'wholly its own') OVER of_store AS last_right, open_rows, line
FROM index_check
WINDOW of_store AS (PARTITION BY store)
QUALIFY row_number() OVER (PARTITION BY store ORDER BY asked DESC, check_key) = 1
ORDER BY verdict = 'wholly its own', store;
