-- How long did audits take, measure by measure, without what earlier audits had computed?
SELECT
    named.source, named.asked, run.measure, round(run.seconds, 1) AS seconds, run.encodes,
    round(audit.seconds, 1) AS audit_seconds, audit.profile, named.audit_id
FROM measure_run AS run
JOIN audit USING (audit_id)
JOIN audit_named AS named USING (audit_id)
ORDER BY named.asked DESC, named.source, run.measure, named.audit_id;
