-- Which downstream scores were imported, and which audited checkpoints do they belong to?
SELECT
    score.checkpoint, score.revision, count(DISTINCT score.task) AS tasks, count(*) AS scores,
    round(min(score.score), 4) AS lowest, round(max(score.score), 4) AS highest, max(score.imported) AS imported,
    min(audited.sources) AS audited_as
FROM downstream_score AS score
LEFT JOIN (
    SELECT match.name, list(DISTINCT checkpoint.source ORDER BY checkpoint.source) AS sources
    FROM checkpoint_match AS match
    JOIN checkpoint USING (checkpoint_id)
    WHERE match.kind = 'scored'
    GROUP BY match.name
) AS audited ON audited.name = score.checkpoint
GROUP BY score.checkpoint, score.revision
ORDER BY score.checkpoint, score.revision;
