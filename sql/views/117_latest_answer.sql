-- The newest answer to each question, as it was asked.
CREATE OR REPLACE VIEW latest_answer AS
SELECT *
FROM answer
QUALIFY row_number() OVER (PARTITION BY question_key ORDER BY asked DESC, answer_id) = 1;
