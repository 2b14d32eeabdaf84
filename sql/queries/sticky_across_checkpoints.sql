-- Which tokens are sticky in several checkpoints that share a tokenizer?
SELECT
    tokenizer_sha256[:12] AS tokenizer, token_id, token, origin, script, checkpoints, sticky_by_retention,
    sticky_by_definition, strong_or_moderate, round(loss_min, 3) AS loss_min, round(loss_max, 3) AS loss_max, sources
FROM sticky_across_checkpoints
ORDER BY checkpoints DESC, loss_max DESC, token_id
LIMIT 50;
