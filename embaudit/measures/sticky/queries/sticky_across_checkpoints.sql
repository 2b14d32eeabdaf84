-- Which tokens are severe, or outliers among the candidates, in several checkpoints that share a vocabulary?
SELECT
    vocabulary_md5[:12] AS vocabulary, token_id, token, origin, script, checkpoints, outlier_by_retention,
    outlier_by_definition, strong_or_moderate, round(loss_min, 3) AS loss_min, round(loss_max, 3) AS loss_max, sources
FROM sticky_across_checkpoints
ORDER BY checkpoints DESC, loss_max DESC, token_id, vocabulary_md5
LIMIT 50;
