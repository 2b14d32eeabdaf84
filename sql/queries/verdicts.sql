-- May each checkpoint be served, and if not, why not?
SELECT latest.source, kind AS verdict, cause, looks, unmeasured, line, audit_id, latest.finished
FROM verdict
JOIN (FROM latest_result WHERE measure = 'integrity' AND is_lead) AS latest USING (audit_id)
ORDER BY kind = 'do not serve' DESC, latest.source, audit_id;
