-- Downstream scores joined with average SOCM (socm) or the normalised spread of the pooled states (spread), one row per checkpoint and task.
-- A task's score is the mean over the parts (split, subset) that all its checkpoints have; over the test split if there is one.
CREATE OR REPLACE VIEW score_beside_measure AS
WITH picked AS (
    SELECT match.checkpoint_id, match.matched_by, score.*
    FROM checkpoint_match AS match
    JOIN downstream_score AS score ON score.checkpoint = match.name
    JOIN checkpoint ON checkpoint.checkpoint_id = match.checkpoint_id
    WHERE match.kind = 'scored'
    -- Of several revisions: the audited one, otherwise a named one, otherwise the newest import.
    QUALIFY row_number() OVER (
        PARTITION BY match.checkpoint_id, task, split, subset
        ORDER BY
            (score.revision = coalesce(checkpoint.revision, '')) DESC, match.matched_by,
            (score.revision <> '') DESC, imported DESC, score.checkpoint, score.revision
    ) = 1
),
part AS (
    SELECT * FROM picked QUALIFY split = 'test' OR NOT bool_or(split = 'test') OVER (PARTITION BY task)
),
common AS (
    SELECT task, split, subset
    FROM part
    JOIN (SELECT task, count(DISTINCT checkpoint_id) AS checkpoints FROM part GROUP BY task) AS task_size USING (task)
    GROUP BY task, split, subset
    HAVING count(*) = max(checkpoints)
),
scored AS (
    SELECT
        checkpoint_id, min(checkpoint) AS name, min(matched_by) AS matched_by, task, count(*) AS parts,
        avg(score) AS score
    FROM part
    JOIN common USING (task, split, subset)
    GROUP BY checkpoint_id, task
),
measured AS (
    SELECT audit_id, 'socm' AS measure, corpus, socm_mean AS value FROM socm_summary
    UNION ALL
    SELECT audit_id, 'spread' AS measure, corpus, normalised_spread AS value
    FROM pooled_stat
),
newest AS (
    SELECT
        audit.audit_id, audit.checkpoint_id, audit.finished, checkpoint.source, checkpoint.pooling_is_mean,
        checkpoint.weights_sha256, measured.measure, measured.corpus, measured.value
    FROM measured
    JOIN audit USING (audit_id)
    JOIN checkpoint ON checkpoint.checkpoint_id = audit.checkpoint_id
    WHERE audit.status = 'published' AND measured.value IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY audit.checkpoint_id, measured.measure, measured.corpus ORDER BY audit.finished DESC, audit.audit_id
    ) = 1
),
beside AS (
    SELECT newest.*, scored.* EXCLUDE (checkpoint_id)
    FROM newest
    JOIN scored USING (checkpoint_id)
    -- A model with two names, poolings or length limits counts once.
    QUALIFY row_number() OVER (
        PARTITION BY measure, corpus, task, weights_sha256
        ORDER BY pooling_is_mean DESC, matched_by, finished DESC, audit_id
    ) = 1
)
SELECT name AS checkpoint, source, checkpoint_id, audit_id, matched_by, task, parts, score, measure, corpus, value
FROM beside
-- Each set of scores belongs to one model.
QUALIFY row_number() OVER (
    PARTITION BY measure, corpus, task, name ORDER BY matched_by, pooling_is_mean DESC, finished DESC, audit_id
) = 1;
