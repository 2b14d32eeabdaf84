-- What do temperatures, averaged chunks, whitening and centring score on the held-out half?
SELECT
    source, task, arm, tau, bin_low, bin_high, items, units, round(score, 4) AS score,
    round(difference, 4) AS difference, round(low, 4) AS low, round(high, 4) AS high
FROM tempscale_curve
WHERE split = 'report'
ORDER BY source, task, bin, arm <> 'none', arm <> 'temperature', tau DESC, arm, audit_id;
