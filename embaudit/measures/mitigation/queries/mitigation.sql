-- What helps against sticky tokens in texts, and what does it cost on clean texts?
SELECT
    latest.source, corpus, metric, remedy, round(clean, 4) AS clean, round(clean_change, 4) AS clean_change,
    round(clean_change_low, 4) AS clean_change_low, round(clean_change_high, 4) AS clean_change_high,
    round(poisoned, 4) AS poisoned, round(poisoned_change, 4) AS poisoned_change,
    round(poisoned_change_low, 4) AS poisoned_change_low, round(poisoned_change_high, 4) AS poisoned_change_high,
    tokens, items, texts, touched
FROM mitigation
JOIN (FROM latest_result WHERE measure = 'mitigation') AS latest USING (audit_id)
ORDER BY latest.source, corpus, metric, remedy <> 'none', poisoned DESC, remedy, audit_id;
