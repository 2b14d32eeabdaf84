-- How did each night of a watch end, what did it look at, and how long did it take?
SELECT
    started, state, problem_count AS problems, round(seconds, 1) AS seconds, sources, audited, answers,
    watch_list, exit_code, message
FROM watch_run
ORDER BY started DESC, run_key;
