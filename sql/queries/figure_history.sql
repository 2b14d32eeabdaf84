-- How did every figure of every checkpoint's name move, audit by audit?
SELECT
    source, summary, item, measure, asked, round(value, 4) AS value, round(low, 4) AS low, round(high, 4) AS high,
    round(change, 4) AS change, audit_id
FROM figure_history
ORDER BY source, summary, item, measure, asked, audit_id;
