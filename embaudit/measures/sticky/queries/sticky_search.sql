-- What did the search for sticky tokens cost, how reliable are its scores, and what did it miss?
SELECT
    latest.source, latest.checkpoint_id, protocol, search, searched, scanned, pilot, encodes,
    exhaustive_encodes, round(exhaustive_encodes / encodes, 1) AS times_fewer, round(reliability, 2) AS reliability,
    round(prediction, 2) AS prediction, scan_dtype, round(scan_speedup, 2) AS scan_speedup, rank_correlation,
    pilot_missed, pilot_shortlisted, round(miss_rate, 3) AS miss_rate, round(miss_low, 3) AS miss_low,
    round(miss_high, 3) AS miss_high
FROM sticky_summary
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
ORDER BY latest.source, latest.checkpoint_id, protocol;
