-- How does the effect of the worst tokens grow with the number of copies?
SELECT
    latest.source, latest.checkpoint_id, token_id, token, copies, role, round(pull, 3) AS pull,
    round(slope, 3) AS slope, round(loss, 3) AS loss
FROM sticky_dose
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
JOIN token USING (checkpoint_id, token_id)
ORDER BY latest.source, latest.checkpoint_id, role, token_id, copies;
