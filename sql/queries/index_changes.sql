-- What becomes of an index when a watched source's next revision takes over?
SELECT watched.source, i.verdict, i.median_cosine, i.compared, i.line, i.audit_id, i.predecessor_audit_id
FROM index_change AS i
JOIN watched_revision AS watched ON watched.audit_id = i.audit_id
ORDER BY watched.last_seen DESC, watched.source, i.predecessor_audit_id;
