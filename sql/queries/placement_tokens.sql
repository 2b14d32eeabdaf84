-- What loss does each of the worst tokens cause by position of its copies, and what does such a text look like?
SELECT
    checkpoint.source, token_id, token, strategy, round(loss, 3) AS loss, round(loss_low, 3) AS loss_low,
    round(loss_high, 3) AS loss_high, round(change, 3) AS change, round(change_low, 3) AS change_low,
    round(change_high, 3) AS change_high, round(copies, 1) AS copies, round(place, 2) AS place, example
FROM placement_token
JOIN audit USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
WHERE audit.status = 'published'
QUALIFY dense_rank() OVER (PARTITION BY checkpoint_id ORDER BY audit.finished DESC, audit_id) = 1
ORDER BY checkpoint.source, token_id, strategy <> 'rotation', loss DESC, strategy, audit_id;
