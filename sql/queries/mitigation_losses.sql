-- What loss do the worst tokens still cause under each remedy, and how many other tokens do?
SELECT
    checkpoint.source, remedy, round(loss, 3) AS loss, round(loss_low, 3) AS loss_low, round(loss_high, 3) AS loss_high,
    round(change, 3) AS change, round(change_low, 3) AS change_low, round(change_high, 3) AS change_high, severe,
    tokens, lossy, vocabulary, fitted_on
FROM mitigation_loss
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published'
QUALIFY dense_rank() OVER (PARTITION BY checkpoint_id ORDER BY audit.finished DESC, audit_id) = 1
ORDER BY checkpoint.source, remedy <> 'none', loss, remedy, audit_id;
