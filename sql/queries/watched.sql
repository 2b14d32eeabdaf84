-- Which checkpoints are watched, and what is the status of each one's newest revision?
SELECT
    source, left(revision, 12) AS revision, status, figures_worse AS worse, revisions, open_items AS open, checkpoint_id,
    audit_id, first_seen, last_seen, reason
FROM watched_source
ORDER BY source, last_seen DESC, parameters_key;
