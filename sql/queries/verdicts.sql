-- May each checkpoint be served, and if not, why not?
SELECT source, kind AS verdict, cause, looks, unmeasured, line, audit_id, finished
FROM latest_verdict
ORDER BY kind = 'do not serve' DESC, source, audit_id;
