-- Which tokens cause the largest loss, in the newest search of each checkpoint?
SELECT
    latest.source, token_id, token, round(loss, 3) AS loss, round(loss_low, 3) AS loss_low,
    round(loss_high, 3) AS loss_high, round(pull, 3) AS pull, round(focal_point, 3) AS focal_point,
    severity, retention_outlier, definition_outlier, basis, origin, script
FROM sticky_token
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
ORDER BY loss DESC, token_id, latest.source, audit_id
LIMIT 20;
