-- Where in a text do sticky tokens do most harm, and how much more than at the positions of the search?
SELECT
    latest.source, role, strategy, round(loss, 3) AS loss, round(loss_low, 3) AS loss_low,
    round(loss_high, 3) AS loss_high, round(change, 3) AS change, round(change_low, 3) AS change_low,
    round(change_high, 3) AS change_high, round(loss_seen, 3) AS loss_seen, round(copies, 1) AS copies,
    round(place, 2) AS place, tokens, draws, budget, encodes
FROM placement
JOIN (FROM latest_result WHERE measure = 'placement') AS latest USING (audit_id)
ORDER BY latest.source, role DESC, strategy <> 'rotation', loss DESC, strategy, audit_id;
