-- How does the effect of the worst tokens grow with the number of copies?
SELECT
    latest_audit.source, latest_audit.checkpoint_id, token_id, token, copies, role, round(pull, 3) AS pull,
    round(slope, 3) AS slope, round(loss, 3) AS loss
FROM sticky_dose
JOIN latest_audit USING (audit_id)
JOIN token USING (checkpoint_id, token_id)
ORDER BY latest_audit.source, latest_audit.checkpoint_id, role, token_id, copies;
