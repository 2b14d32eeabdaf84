-- Which answers are another verdict than the time before, and when did they change?
SELECT asks, subject, function, asked, verdict_before, verdict, line, answer_id
FROM answer_history
WHERE is_other_verdict AND verdict_before IS NOT NULL
ORDER BY asked DESC, subject, asks, answer_id;
