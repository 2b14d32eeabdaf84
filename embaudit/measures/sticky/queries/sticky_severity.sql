-- How many tokens of the vocabulary reach each severity, estimated from a random sample, and how many were validated?
SELECT
    latest.source, latest.checkpoint_id, severity, least_loss, round(estimated) AS estimated,
    round(estimated_low) AS estimated_low, round(estimated_high) AS estimated_high, validated, confirmed, is_capped
FROM sticky_severity
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
ORDER BY latest.source, latest.checkpoint_id, least_loss DESC;
