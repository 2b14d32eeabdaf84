-- Does a temperature per layer or head help, and more than a single one?
SELECT
    newest.source, s.task, s.part, s.tau, s.taus, s.recommendation, round(s.score_before, 4) AS score_before,
    round(s.score_single, 4) AS score_single, round(s.score_after, 4) AS score_after,
    round(s.difference, 4) AS difference, round(s.low, 4) AS low, round(s.high, 4) AS high,
    round(s.beyond, 4) AS beyond, round(s.beyond_low, 4) AS beyond_low, round(s.beyond_high, 4) AS beyond_high,
    s.items, s.trials
FROM tempscale_search AS s
JOIN (SELECT DISTINCT audit_id, source FROM tempscale_answer) AS newest USING (audit_id)
ORDER BY newest.source, s.task, s.part DESC, s.audit_id;
