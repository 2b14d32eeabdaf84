-- Does a lower attention temperature help? One row per task and bin, from each checkpoint's newest results.
CREATE OR REPLACE VIEW tempscale_answer AS
WITH newest AS (
    SELECT audit_id, checkpoint_id FROM latest_result WHERE measure = 'tempscale'
)
SELECT checkpoint.source, newest.checkpoint_id, choice.*
FROM tempscale_choice AS choice
JOIN newest USING (audit_id)
JOIN checkpoint USING (checkpoint_id);
