-- Which tokens are sticky according to the published code?
SELECT
    latest.source, latest.checkpoint_id, token_id, token, round(score, 2) AS score, score_rank,
    round(value, 4) AS value, round(threshold, 4) AS threshold, verdict
FROM sticky_reference
JOIN (FROM latest_result WHERE measure = 'sticky') AS latest USING (audit_id)
JOIN token USING (checkpoint_id, token_id)
WHERE is_shortlisted
QUALIFY row_number() OVER (PARTITION BY audit_id ORDER BY value DESC, token_id) <= 50
ORDER BY latest.source, latest.checkpoint_id, value DESC, token_id;
