-- Tokens found sticky in several checkpoints that share a tokenizer, from the newest audit of each checkpoint.
CREATE OR REPLACE VIEW sticky_across_checkpoints AS
SELECT
    checkpoint.tokenizer_sha256,
    sticky_token.token_id,
    any_value(sticky_token.token) AS token,
    any_value(sticky_token.origin) AS origin,
    any_value(sticky_token.script) AS script,
    count(*) AS checkpoints,
    count(*) FILTER (sticky_token.retention_verdict = 'sticky') AS sticky_by_retention,
    count(*) FILTER (sticky_token.definition_verdict = 'sticky') AS sticky_by_definition,
    count(*) FILTER (sticky_token.severity IN ('strong', 'moderate')) AS strong_or_moderate,
    min(sticky_token.loss) AS loss_min,
    max(sticky_token.loss) AS loss_max,
    list(latest_audit.source ORDER BY sticky_token.loss DESC) AS sources
FROM sticky_token
JOIN latest_audit USING (audit_id)
JOIN checkpoint ON checkpoint.checkpoint_id = latest_audit.checkpoint_id
WHERE sticky_token.retention_verdict = 'sticky'
    OR sticky_token.definition_verdict = 'sticky'
    OR sticky_token.severity IN ('strong', 'moderate')
GROUP BY checkpoint.tokenizer_sha256, sticky_token.token_id
HAVING count(*) > 1;
