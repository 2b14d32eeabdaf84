-- Which checkpoints are watched, and what became of the newest revision of each?
SELECT
    source, left(revision, 12) AS revision, status, figures_worse AS worse, revisions, checkpoint_id, audit_id, first_seen,
    last_seen, reason
FROM watched_source
ORDER BY source, last_seen DESC, parameters_key;
