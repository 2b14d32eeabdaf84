-- What loss does each of the worst tokens cause by position of its copies, and what does such a text look like?
SELECT
    latest.source, token_id, token, strategy, round(loss, 3) AS loss, round(loss_low, 3) AS loss_low,
    round(loss_high, 3) AS loss_high, round(change, 3) AS change, round(change_low, 3) AS change_low,
    round(change_high, 3) AS change_high, round(copies, 1) AS copies, round(place, 2) AS place, example
FROM placement_token
JOIN (FROM latest_result WHERE measure = 'placement') AS latest USING (audit_id)
ORDER BY latest.source, token_id, strategy <> 'rotation', loss DESC, strategy, audit_id;
