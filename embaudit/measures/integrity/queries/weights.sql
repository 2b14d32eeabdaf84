-- Where does each tensor of a checkpoint come from, and is any missing, changed or read by nothing?
SELECT
    latest.source, tensor, layer, status, file, stored_name, stored_dtype, shape, entries,
    round(deviation, 4) AS deviation, round(largest, 3) AS largest
FROM weight
JOIN (FROM latest_result WHERE measure = 'integrity') AS latest USING (audit_id)
ORDER BY latest.source, status IN ('missing', 'changed') DESC, status = 'unread' DESC, layer NULLS FIRST, tensor, audit_id;
