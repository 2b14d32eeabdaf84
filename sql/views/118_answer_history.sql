-- Every answer to every question, with the verdict before it, and since when it stands without a break.
-- Another break is where the verdict stays, and something else is wrong, or much more; less is none.
CREATE OR REPLACE VIEW answer_history AS
WITH told AS (
    SELECT
        *,
        lag(verdict) OVER of_question AS verdict_before,
        verdict IS DISTINCT FROM lag(verdict) OVER of_question AS is_other_verdict,
        verdict IS DISTINCT FROM lag(verdict) OVER of_question
        OR NOT list_has_all(
            string_split(lag(problems) OVER of_question, ' '), string_split(problems, ' ')
        ) AS is_other
    FROM answer
    WINDOW of_question AS (PARTITION BY question_key ORDER BY asked, answer_id)
),
run AS (
    SELECT *, sum(CAST(is_other AS INTEGER)) OVER (PARTITION BY question_key ORDER BY asked, answer_id) AS nth
    FROM told
)
SELECT
    * EXCLUDE (nth, is_other),
    min(asked) OVER (PARTITION BY question_key, nth) AS since,
    first_value(answer_id) OVER (PARTITION BY question_key, nth ORDER BY asked, answer_id) AS first_answer_id
FROM run;
