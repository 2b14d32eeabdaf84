-- How much do the exponents of the generalised SOCM matter?
SELECT latest_audit.source, corpus, alpha, beta, round(socm_mean, 4) AS socm_mean
FROM socm_surface
JOIN latest_audit USING (audit_id)
ORDER BY latest_audit.source, latest_audit.audit_id, corpus, alpha, beta;
