-- Scores of every arm, for plots of score against tau by task and length; from each checkpoint's newest audit.
CREATE OR REPLACE VIEW tempscale_curve AS
SELECT newest.source, newest.checkpoint_id, row.*
FROM tempscale AS row
JOIN (SELECT DISTINCT audit_id, source, checkpoint_id FROM tempscale_answer) AS newest USING (audit_id)
WHERE score IS NOT NULL;
