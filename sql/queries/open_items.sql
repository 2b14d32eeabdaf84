-- What must not be served, which gates tripped and which figures got worse, in what each checkpoint's name stands for now, that nobody has accepted?
SELECT
    coalesce(audit.settings ->> '$.source', checkpoint.source) AS source, found_item.audit_id, found_item.what,
    found_item.policy, found_item.item, found_item.against, audit.finished
FROM found_item
JOIN audit USING (audit_id)
LEFT JOIN checkpoint USING (checkpoint_id)
WHERE found_item.accepted IS NULL AND audit.checkpoint_id IN (SELECT checkpoint_id FROM named_checkpoint)
ORDER BY ALL;
