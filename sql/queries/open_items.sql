-- What is open: verdicts not to serve, tripped gates, worse figures of what each checkpoint's name stands for now, what is wrong with a watched checkpoint, and answers that are a problem, that nobody has accepted?
SELECT
    coalesce(audit.settings ->> '$.source', checkpoint.source) AS source, found_item.audit_id, found_item.what,
    found_item.policy, found_item.item, found_item.against, audit.finished
FROM found_item
JOIN audit USING (audit_id)
LEFT JOIN checkpoint USING (checkpoint_id)
WHERE found_item.accepted IS NULL AND audit.checkpoint_id IN (SELECT checkpoint_id FROM named_checkpoint)
UNION ALL
SELECT against, audit_id, what, '', item, against, coalesce(
    (SELECT asked FROM answer WHERE answer_id = found_item.audit_id),
    (SELECT max(last_seen) FROM watched_revision WHERE source = found_item.against)
)
FROM found_item
WHERE accepted IS NULL AND what IN ('watched', 'answer')
ORDER BY ALL;
