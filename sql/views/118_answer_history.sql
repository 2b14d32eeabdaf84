-- Every answer to every question, with the verdict before it and since when the present one stands without a break.
CREATE OR REPLACE VIEW answer_history AS
WITH told AS (
    SELECT
        *,
        lag(verdict) OVER of_question AS verdict_before,
        verdict IS DISTINCT FROM lag(verdict) OVER of_question AS is_other_verdict
    FROM answer
    WINDOW of_question AS (PARTITION BY question_key ORDER BY asked, answer_id)
),
run AS (
    SELECT *, sum(CAST(is_other_verdict AS INTEGER)) OVER (PARTITION BY question_key ORDER BY asked, answer_id) AS nth
    FROM told
)
SELECT
    * EXCLUDE (nth),
    min(asked) OVER of_run AS since,
    first_value(answer_id) OVER (PARTITION BY question_key, nth ORDER BY asked, answer_id) AS first_answer_id
FROM run
WINDOW of_run AS (PARTITION BY question_key, nth);
