-- Does a lower attention temperature help this checkpoint, and on which lengths?
SELECT
    source, task, bin_low, bin_high, recommendation, tau, round(score_before, 4) AS score_before,
    round(score_after, 4) AS score_after, round(difference, 4) AS difference, round(low, 4) AS low,
    round(high, 4) AS high, items, units, reads, max_tokens, reason
FROM tempscale_answer
ORDER BY source, task, bin, audit_id;
