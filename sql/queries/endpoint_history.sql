-- What did each watched endpoint serve night by night, and when did that change?
SELECT endpoint, asked, verdict, is_other_verdict AS changed, worst, kinds_apart, kinds, line
FROM endpoint_history
ORDER BY endpoint, asked DESC, answer_id;
