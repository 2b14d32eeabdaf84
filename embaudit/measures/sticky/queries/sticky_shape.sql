-- Are the similarities between vocabulary entries Gaussian, as the sticky-token paper assumes?
SELECT
    latest.source, space, tokens, pairs, round(mean, 4) AS mean, round(sd, 4) AS sd,
    round(skewness, 3) AS skewness, round(skewness_low, 3) AS skewness_low, round(skewness_high, 3) AS skewness_high,
    round(excess_kurtosis, 3) AS excess_kurtosis, round(excess_kurtosis_low, 3) AS excess_kurtosis_low,
    round(excess_kurtosis_high, 3) AS excess_kurtosis_high, round(gaussian_distance, 4) AS gaussian_distance,
    round(gaussian_distance_low, 4) AS gaussian_distance_low, round(gaussian_distance_high, 4) AS gaussian_distance_high,
    round(q01, 3) AS q01, round(q50, 3) AS q50, round(q99, 3) AS q99
FROM sticky_shape
JOIN (FROM latest_result WHERE measure = 'sticky' AND is_lead) AS latest USING (audit_id)
ORDER BY latest.source, latest.audit_id, space;
