-- How do the audited checkpoints compare?
SELECT * EXCLUDE (audits) FROM leaderboard ORDER BY worst_loss DESC NULLS LAST, source, checkpoint_id;
