-- Which tokens are sticky, or of moderate or strong severity, in several checkpoints that share a vocabulary?
SELECT
    vocabulary_md5[:12] AS vocabulary, token_id, token, origin, script, checkpoints, sticky_by_retention,
    sticky_by_definition, strong_or_moderate, round(loss_min, 3) AS loss_min, round(loss_max, 3) AS loss_max, sources
FROM sticky_across_checkpoints
ORDER BY checkpoints DESC, loss_max DESC, token_id, vocabulary_md5
LIMIT 50;
