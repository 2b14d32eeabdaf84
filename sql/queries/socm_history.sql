-- How did the mean SOCM of each corpus move, checkpoint by checkpoint?
SELECT
    source, item AS corpus, asked, round(value, 4) AS socm_mean, round(low, 4) AS low, round(high, 4) AS high,
    round(change, 4) AS change, audit_id
FROM figure_history
WHERE summary = 'socm_summary' AND measure = 'socm_mean'
ORDER BY source, corpus, asked, audit_id;
