-- What loss do the worst tokens still cause under each remedy, and how many other tokens do?
SELECT
    latest.source, remedy, round(loss, 3) AS loss, round(loss_low, 3) AS loss_low, round(loss_high, 3) AS loss_high,
    round(change, 3) AS change, round(change_low, 3) AS change_low, round(change_high, 3) AS change_high, severe,
    tokens, lossy, vocabulary, fitted_on
FROM mitigation_loss
JOIN (FROM latest_result WHERE measure = 'mitigation') AS latest USING (audit_id)
ORDER BY latest.source, remedy <> 'none', loss, remedy, audit_id;
