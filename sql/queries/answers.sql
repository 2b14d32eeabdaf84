-- What was the last answer to each question, and since when is it so?
SELECT
    latest.asks, latest.subject, latest.function, latest.level, latest.line, history.since, latest.asked,
    round(latest.seconds, 1) AS seconds, latest.answer_id
FROM latest_answer AS latest
JOIN answer_history AS history USING (answer_id)
ORDER BY
    list_position(['problem', 'look', 'not measured', 'ok'], latest.level), latest.subject, latest.asks,
    latest.answer_id;
