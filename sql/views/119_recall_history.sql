-- Recall of each index's own search, each time that it was asked, by setting, and its change since the time before.
CREATE OR REPLACE VIEW recall_history AS
SELECT
    answer.subject AS store,
    part.item AS setting,
    answer.asked,
    part.value AS recall,
    part.low AS recall_low,
    part.high AS recall_high,
    part.value - lag(part.value) OVER of_setting AS change,
    part.of AS queries,
    answer.verdict,
    answer.function,
    answer.answer_id
FROM answer_figure AS part
JOIN answer ON answer.computed_id = part.answer_id
WHERE part.figure = 'recall_at_10'
WINDOW of_setting AS (PARTITION BY answer.question_key, part.item ORDER BY answer.asked, answer.answer_id);
