-- What must not be served, which gates tripped, which figures got worse, in what each checkpoint's name stands for now, and what is wrong in an index, that nobody has accepted?
SELECT
    coalesce(audit.settings ->> '$.source', checkpoint.source) AS source, found_item.audit_id, found_item.what,
    found_item.policy, found_item.item, found_item.against, audit.finished
FROM found_item
JOIN audit USING (audit_id)
LEFT JOIN checkpoint USING (checkpoint_id)
WHERE found_item.accepted IS NULL AND audit.checkpoint_id IN (SELECT checkpoint_id FROM named_checkpoint)
UNION ALL
SELECT found_item.against, found_item.audit_id, found_item.what, '', found_item.item, found_item.against, check_.asked
FROM found_item
JOIN index_check AS check_ ON check_.check_key = found_item.audit_id
WHERE found_item.accepted IS NULL AND found_item.what = 'index'
ORDER BY ALL;
