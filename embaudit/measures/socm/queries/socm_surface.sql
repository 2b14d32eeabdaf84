-- How much do the exponents of the generalised SOCM matter?
SELECT latest.source, corpus, alpha, beta, round(socm_mean, 4) AS socm_mean
FROM socm_surface
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
ORDER BY latest.source, latest.audit_id, corpus, alpha, beta;
